"""Every report in every format against the files in tests/golden; `pytest --update-golden` writes them anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwatch.render.report import FORMATS, Style
from tests.render.reports import every_report

GOLDEN = Path(__file__).parent.parent / "golden"
FULL = {"recommend", "once"}  # in every format; the others in those that show a difference
FEW = ("table", "json", "csv")
REPORTS = every_report()
CASES = [(name, form) for name in REPORTS for form in FORMATS.ids() if name in FULL or form in FEW]


@pytest.mark.parametrize(("name", "form"), CASES)
def test_the_output_is_what_it_was(name: str, form: str, request: pytest.FixtureRequest) -> None:
    text = FORMATS.get(form)(REPORTS[name], Style(wide=form == "wide"))
    path = GOLDEN / f"{name}.{form}"
    if request.config.getoption("--update-golden"):
        path.write_text(text, encoding="utf-8", newline="")
    assert path.exists(), f"no golden file {path.name}: run pytest --update-golden and read the difference"
    with path.open(encoding="utf-8", newline="") as file:
        assert text == file.read()


def test_no_golden_file_is_left_over() -> None:
    expected = {f"{name}.{form}" for name, form in CASES} | {"__init__.py"}
    assert {path.name for path in GOLDEN.iterdir() if path.is_file()} == expected
