"""From what a person names (a configuration, a file, a trace, the generator) to sources and settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gpuwatch.config import Config, InputSpec, SourceConfig, load_config, read_table
from gpuwatch.errors import MissingExtraError, RegistryError, SettingsError
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.values import value
from gpuwatch.sources.base import Source

# List prices are a choice, not a measurement; the demo needs some so that its advice has a price.
DEMO_PRICES = {
    "default": 1.0,
    "B200": 5.5,
    "H200-141": 3.8,
    "H100-80": 3.0,
    "A100-80": 1.8,
    "A100-40": 1.3,
    "L40S": 1.0,
    "T4": 0.35,
}


@value
class SnapshotFileSettings:
    """[[source]] kind = "snapshot"."""

    path: str
    name: str | None = None


@value
class TraceSettings:
    """[[source]] kind = "trace"."""

    folder: str
    workload: str = "default"
    load_ratio: float = 0.8
    policy: str = "best_fit"
    seed: int | None = None


@value
class GeneratedSettings:
    """[[source]] kind = "generated"."""

    seed: int = 7
    scale: int = 1


def inputs(spec: InputSpec) -> tuple[list[Source], AnalysisSettings, str | None]:
    from gpuwatch.sources.files import SnapshotFileSource
    from gpuwatch.sources.generated import GeneratedSource
    from gpuwatch.sources.trace import TraceSource

    if spec.kind == "generated":
        return [GeneratedSource(spec.seed, spec.scale)], demo_settings(), None
    if spec.path is None:
        raise SettingsError(f"an input of kind {spec.kind} needs a path")
    if spec.kind == "snapshot":
        return [SnapshotFileSource(spec.path)], AnalysisSettings(), None
    if spec.kind == "trace":
        # Without a load the cluster is empty, and no order of jobs is drawn.
        source = TraceSource(spec.path, spec.workload, spec.load_ratio, spec.policy, spec.seed)
        return [source], AnalysisSettings(), None
    config = load_config(spec.path)
    if not config.sources:
        raise SettingsError(f"{spec.path} names no source", todo='add [[source]] with kind = "prometheus" and url')
    return [source_of(each, config.analysis) for each in config.sources], config.analysis, named(config)


def named(config: Config) -> str | None:
    return None if config.cluster == Config().cluster else config.cluster


def demo_settings() -> AnalysisSettings:
    """The default settings with prices."""
    return AnalysisSettings(gpu_hour_price=DEMO_PRICES)


def source_of(written: SourceConfig, analysis: AnalysisSettings) -> Source:
    return _BUILDERS[written.kind](written, analysis)


def _settings(cls: Any, written: SourceConfig) -> Any:
    return read_table(cls, written.settings, written.text, written.origin, written.at)


def _snapshot_file(written: SourceConfig, _: AnalysisSettings) -> Source:
    from gpuwatch.sources.files import SnapshotFileSource

    chosen: SnapshotFileSettings = _settings(SnapshotFileSettings, written)
    return SnapshotFileSource(chosen.path, chosen.name)


def _trace(written: SourceConfig, _: AnalysisSettings) -> Source:
    from gpuwatch.placement.policy import POLICIES
    from gpuwatch.sources.trace import TraceSource

    chosen: TraceSettings = _settings(TraceSettings, written)
    try:
        POLICIES.get(chosen.policy)
    except RegistryError as err:  # told now, not at every round
        raise SettingsError(err.what, tried="reading [[source]] of kind trace", todo=err.todo) from err
    return TraceSource(chosen.folder, chosen.workload, chosen.load_ratio, chosen.policy, chosen.seed, live=True)


def _generated(written: SourceConfig, _: AnalysisSettings) -> Source:
    from gpuwatch.sources.generated import GeneratedSource

    chosen: GeneratedSettings = _settings(GeneratedSettings, written)
    return GeneratedSource(chosen.seed, chosen.scale)


def _prometheus(written: SourceConfig, analysis: AnalysisSettings) -> Source:
    from gpuwatch.sources.prometheus import PrometheusSource
    from gpuwatch.sources.settings import PrometheusSettings

    chosen: PrometheusSettings = _settings(PrometheusSettings, written)
    if "window_seconds" not in written.settings:
        # A shorter window than the idle test asks for would leave every verdict unknown.
        chosen = replace(chosen, window_seconds=analysis.idle_window_seconds)
    return PrometheusSource(chosen)


_BUILDERS: dict[str, Callable[[SourceConfig, AnalysisSettings], Source]] = {
    "prometheus": _prometheus,
    "snapshot": _snapshot_file,
    "trace": _trace,
    "generated": _generated,
}


def need_analytics() -> None:
    """One line about the missing extra instead of a traceback from deep inside."""
    from importlib.util import find_spec

    missing = [name for name in ("numpy", "fastapi", "uvicorn", "sqlalchemy") if find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"analysis needs {', '.join(missing)}", todo="pip install 'gpuwatch-stack[analytics]'")
