"""What a replay protocol is: how one run is made, what its result is, and how results are reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from gpuwatch.registry import Registry
from gpuwatch.render.report import Report
from gpuwatch.traces.trace_format import JobTrace

Option = bool | int | float | str | None


class ReplayProtocol(Protocol):
    """One way to replay a trace. A run must give the same result for the same arguments, but for the time it took."""

    result: type[Any]  # the value that one run gives; read back strictly from JSON

    @property
    def options(self) -> Mapping[str, Option]:
        """The options that it takes, by name, with their defaults."""
        ...

    def check(self, options: Mapping[str, Option]) -> None:
        """SettingsError for options, all of them given, that no run could honor."""
        ...

    def run(self, trace: JobTrace, policy: str, seed: int, options: Mapping[str, Option]) -> Any:
        """One run; a `result`. Raises GpuwatchError. Called in a process of its own, maybe on another machine."""
        ...

    def report(self, results: Sequence[Any], options: Mapping[str, Option]) -> Report:
        """What is printed of `results`, which come in the order in which the runs were asked for."""
        ...


PROTOCOLS: Registry[ReplayProtocol] = Registry("replay protocol", "gpuwatch.experiment.protocols")
