"""The health report stays readable when one fault speaks of every node."""

from __future__ import annotations

from gpuwatch.model.snapshot import Finding
from gpuwatch.render.report import FORMATS, Style
from gpuwatch.render.reports.doctor import doctor_report
from tests.builders import a_snapshot
from tests.evaluations import an_evaluation


def test_many_findings_of_one_code_are_folded_in_the_table_and_whole_in_csv() -> None:
    many = [Finding(code="unknown_node", severity="warning", subject=f"ml/j{n}", detail="gone") for n in range(40)]
    once = Finding(code="index_claimed_twice", severity="warning", subject="n1", detail="odd")
    snapshot = a_snapshot()
    evaluation = an_evaluation(findings=(*many, once))
    report = doctor_report(evaluation, snapshot, None)
    table = FORMATS.get("table")(report, Style())
    assert "35 more" in table
    assert table.count("ml/j") == 5
    assert "index_claimed_twice" in table
    assert FORMATS.get("csv")(report, Style()).count("ml/j") == 40
