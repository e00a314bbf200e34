"""The published protocol: jobs come in a random order until they ask for a multiple of the capacity; nothing leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from gpuwatch.experiment.protocol import PROTOCOLS, Option
from gpuwatch.model.replay import ReplayRun
from gpuwatch.render.report import Report
from gpuwatch.traces.trace_format import JobTrace

if TYPE_CHECKING:
    from gpuwatch.placement.replay import Field


class _Arrivals:
    result = ReplayRun
    options: ClassVar[Mapping[str, Option]] = {"inflate": 1.3}

    def __init__(self) -> None:
        self._field: Field | None = None  # of the last trace: runs come workload by workload

    def check(self, options: Mapping[str, Option]) -> None:
        """The command line holds the bounds of the only option."""

    def run(self, trace: JobTrace, policy: str, seed: int, options: Mapping[str, Option]) -> ReplayRun:
        from gpuwatch.placement.replay import field_of, replay_arrivals

        if self._field is None or self._field.trace is not trace:
            self._field = field_of(trace)
        return replay_arrivals(self._field, policy, seed=seed, inflate=float(options["inflate"] or 0.0))

    def report(self, results: Sequence[ReplayRun], options: Mapping[str, Option]) -> Report:
        from gpuwatch.placement.replay_summary import mean_curves, summarize
        from gpuwatch.render.reports.replay import replay_report

        return replay_report(results, summarize(results), mean_curves(results))


PROTOCOLS.register("arrivals")(_Arrivals())
