"""Our own protocol: jobs arrive, wait in a queue, run for their time and leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

from gpuwatch.experiment.protocol import PROTOCOLS, Option
from gpuwatch.model.churn import ChurnRun
from gpuwatch.placement.churn.settings import ChurnSettings
from gpuwatch.render.report import Report
from gpuwatch.traces.trace_format import JobTrace

if TYPE_CHECKING:
    from gpuwatch.placement.replay import Field

_DEFAULTS = ChurnSettings()


class _Churn:
    result = ChurnRun
    options: ClassVar[Mapping[str, Option]] = {each.name: getattr(_DEFAULTS, each.name) for each in fields(_DEFAULTS)}

    def __init__(self) -> None:
        self._field: Field | None = None  # of the last trace: runs come workload by workload

    def check(self, options: Mapping[str, Option]) -> None:
        """SettingsError for options that do not go together or lie out of bounds."""
        _settings(options)

    def run(self, trace: JobTrace, policy: str, seed: int, options: Mapping[str, Option]) -> ChurnRun:
        from gpuwatch.placement.churn.replay import churn_field, replay_churn

        if self._field is None or self._field.trace is not trace:
            self._field = churn_field(trace)
        return replay_churn(self._field, policy, seed=seed, settings=_settings(options))

    def report(self, results: Sequence[ChurnRun], options: Mapping[str, Option]) -> Report:
        from gpuwatch.placement.churn.summary import mean_churn_curves, summarize_churn
        from gpuwatch.render.reports.churn import churn_report

        return churn_report(results, summarize_churn(results), mean_churn_curves(results), _settings(options))


def _settings(options: Mapping[str, Option]) -> ChurnSettings:
    given: dict[str, Any] = dict(options)
    return ChurnSettings(**given)


PROTOCOLS.register("churn")(_Churn())
