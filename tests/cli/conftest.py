"""Runs the command line in this process, on the evaluation built by hand or on a cluster of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpuwatch import wiring
from gpuwatch.__main__ import main
from gpuwatch.config import InputSpec
from gpuwatch.model.codec import dump_snapshot
from gpuwatch.model.evaluation import Evaluation
from gpuwatch.model.history import History
from gpuwatch.model.settings import AnalysisSettings
from tests.builders import a_node, a_snapshot
from tests.render.evaluations import an_evaluation
from tests.render.reports import SNAPSHOT


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it printed where."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """run("recommend", "--top", "3") -> Ended. The environment names no input."""
    for name in ("GPUWATCH_SERVER", "GPUWATCH_CONFIG"):
        monkeypatch.delenv(name, raising=False)

    def go(*args: object) -> Ended:
        capsys.readouterr()
        code = main([str(arg) for arg in args])
        printed = capsys.readouterr()
        return Ended(code, printed.out, printed.err)

    return go


class Wired:
    """Stands in for the evaluation in process: answers with `evaluation`, and remembers what was asked."""

    def __init__(self) -> None:
        self.evaluation: Evaluation = an_evaluation()
        self.specs: list[InputSpec] = []

    def evaluate_once(self, spec: InputSpec) -> wiring.Evaluated:
        self.specs.append(spec)
        return wiring.Evaluated(SNAPSHOT, History(), self.evaluation, AnalysisSettings())


@pytest.fixture
def wired(monkeypatch: pytest.MonkeyPatch) -> Wired:
    made = Wired()
    monkeypatch.setattr(wiring, "evaluate_once", made.evaluate_once)
    return made


@pytest.fixture
def snapshot_file(tmp_path: Path) -> Path:
    """A recorded cluster of 1,000 nodes: more than a pipe holds at once."""
    path = tmp_path / "big.json"
    nodes = [a_node(f"n-{at:04}", 2, "T4", pool="ü") for at in range(1000)]
    path.write_text(dump_snapshot(a_snapshot(*nodes)), encoding="utf-8")
    return path
