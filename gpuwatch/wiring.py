"""Builds everything once: from a configuration or an input, to one evaluation or to a daemon that serves."""

from __future__ import annotations

import logging
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuwatch.clock import Clock, SystemClock
from gpuwatch.config import Config, InputSpec, SourceConfig, load_config, read_table
from gpuwatch.errors import GpuwatchError, MissingExtraError, RegistryError, SettingsError, SourceError
from gpuwatch.model.evaluation import Evaluation
from gpuwatch.model.history import History
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.model.values import value
from gpuwatch.sources.base import Source
from gpuwatch.sources.first import read_first

if TYPE_CHECKING:
    from fastapi import FastAPI

    from gpuwatch.daemon.loop import Daemon

log = logging.getLogger("gpuwatch")

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
HISTORY_HOURS = 28 * 24


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One evaluation with all that went into it."""

    snapshot: ClusterSnapshot
    history: History
    evaluation: Evaluation
    settings: AnalysisSettings


@dataclass(frozen=True, slots=True)
class Served:
    """A daemon, its application and where it will listen; run() starts it.

    `evaluate_first`: nothing is served before the first round, so that whoever finds the port finds an evaluation.
    """

    daemon: Daemon
    app: FastAPI
    host: str
    port: int
    evaluate_first: bool = False


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


def evaluate_once(spec: InputSpec, clock: Clock | None = None) -> Evaluated:
    """Reads the input, evaluates it once and keeps nothing. Raises GpuwatchError when the input cannot be read."""
    _need_analytics()
    from gpuwatch.engine import evaluate

    sources, settings, cluster = _input(spec)
    if spec.forecast_models is not None:
        settings = replace(settings, forecast_models=spec.forecast_models)
    # The generated cluster is asked for its own fixed instant, so that two runs print the same.
    now = _demo_instant() if spec.kind == "generated" else (clock or SystemClock()).now()
    answer = read_first(sources, now)
    if answer.snapshot is None:
        raise answer.error or SourceError("no source answered")
    snapshot = replace(answer.snapshot, cluster=cluster or answer.snapshot.cluster, sources=answer.health)
    history = _past(answer.source, snapshot.taken_at)
    return Evaluated(snapshot, history, evaluate(snapshot, history, settings), settings)


def describe_sources(spec: InputSpec, clock: Clock | None = None) -> list[tuple[str, Any]]:
    """(name, description) of every source of the input that can say what it knows and lacks; the facts behind doctor.

    A source that does not answer stands with its SourceError.
    """
    now = (clock or SystemClock()).now()
    told: list[tuple[str, Any]] = []
    for source in _input(spec)[0]:
        if hasattr(source, "describe"):
            try:
                told.append((source.name, source.describe(now)))
            except SourceError as err:
                told.append((source.name, err))
    return told


def build_daemon(config: Config, clock: Clock | None = None) -> Served:
    """The daemon that a configuration describes. Every fault of the configuration is told here, before it starts."""
    _need_analytics()
    from gpuwatch.store import Store, checked_url, open_store

    if not config.sources:
        raise SettingsError("the configuration names no source", todo='add [[source]] with kind = "prometheus" and url')
    store: Callable[[], Store] | None = None
    if config.store_url:
        checked_url(config.store_url)

        def store() -> Store:
            return open_store(
                config.store_url,
                cluster=config.cluster,
                retention_days=config.retention_days,
                keep_evaluations=config.keep_evaluations,
            )

    return _served(
        [_source(each, config.analysis) for each in config.sources],
        config.analysis,
        cluster=_named(config),
        interval_seconds=config.interval_seconds,
        open_store=store,
        clock=clock,
        host=config.listen_host,
        port=config.listen_port,
        token_file=config.token_file,
    )


def demo_daemon(
    port: int = 9438,
    seed: int = 7,
    trace: Path | None = None,
    *,
    load_ratio: float = 0.8,
    scale: int = 1,
    store_url: str = "sqlite://",
    interval_seconds: float = 15.0,
) -> Served:
    """The whole product on the generated cluster, or on a trace; on loopback, its store in memory unless one is given.

    The generated cluster brings two weeks of demand history; a trace brings none, and says so in its forecasts.
    """
    _need_analytics()
    from gpuwatch.sources.generated import GeneratedSource
    from gpuwatch.sources.trace import TraceSource
    from gpuwatch.store import open_store

    source: Source
    if trace is None:
        source = GeneratedSource(seed, scale)
    else:
        source = TraceSource(trace, load_ratio=load_ratio, seed=seed, live=True)
    served = _served(
        [source],
        demo_settings(),
        cluster=None,
        interval_seconds=interval_seconds,
        open_store=lambda: open_store(store_url, cluster="demo"),
        clock=None,
        host="127.0.0.1",
        port=port,
        token_file=None,
    )
    return replace(served, evaluate_first=True)


def demo_settings() -> AnalysisSettings:
    """The default settings with prices."""
    return AnalysisSettings(gpu_hour_price=DEMO_PRICES)


def run(served: Served) -> None:
    """Serves until SIGTERM or SIGINT, then ends cleanly. A port that is taken is a GpuwatchError."""
    import uvicorn

    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)  # one line per query would bury the faults
    listening = _listen(served.host, served.port)
    host, port = listening.getsockname()[:2]
    options = uvicorn.Config(
        served.app, log_config=None, access_log=False, timeout_keep_alive=30, timeout_graceful_shutdown=3
    )
    # uvicorn raises the signal again once it has stopped; being asked to stop is no failure of ours.
    signal.signal(signal.SIGTERM, lambda *_: None)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # the terminal is gone; with nohup nobody minds
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    if served.evaluate_first:
        served.daemon.round()
    served.daemon.start()
    shown = f"[{host}]" if ":" in host else host
    print(f"gpuwatch serves http://{shown}:{port}/ (Ctrl-C ends it)", file=sys.stderr, flush=True)
    try:
        uvicorn.Server(options).run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        served.daemon.stop()
        listening.close()


def _served(
    sources: Sequence[Source],
    settings: AnalysisSettings,
    *,
    cluster: str | None,
    interval_seconds: float,
    open_store: Any,
    clock: Clock | None,
    host: str,
    port: int,
    token_file: str | None,
) -> Served:
    from gpuwatch.api.app import create_app
    from gpuwatch.api.tokens import is_loopback, read_tokens
    from gpuwatch.daemon.loop import Daemon
    from gpuwatch.engine import place
    from gpuwatch.web.pages import pages

    tokens = read_tokens(token_file) if token_file else None
    if tokens is None and not is_loopback(host):
        raise SettingsError(
            f"refusing to listen on {host}, which other machines can reach, without tokens",
            todo="set [listen] token_file (see docs/api.md), or host = 127.0.0.1",
        )
    daemon = Daemon(
        sources, settings, cluster=cluster, interval_seconds=interval_seconds, open_store=open_store, clock=clock
    )
    app = create_app(daemon.state, place, tokens=tokens, pages=pages(daemon.state))
    return Served(daemon, app, host, port)


def _input(spec: InputSpec) -> tuple[list[Source], AnalysisSettings, str | None]:
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
    return [_source(each, config.analysis) for each in config.sources], config.analysis, _named(config)


def _past(source: object, now: datetime) -> History:
    if not hasattr(source, "demand_history"):
        return History()
    try:
        found: History = source.demand_history(now, HISTORY_HOURS)
        return found
    except SourceError as err:  # the present is worth having without its past
        log.warning("the source cannot tell its past demand: %s", err)
        return History()


def _named(config: Config) -> str | None:
    return None if config.cluster == Config().cluster else config.cluster


def _demo_instant() -> datetime:
    from gpuwatch.simulate.cluster import DEFAULT_TAKEN_AT

    return DEFAULT_TAKEN_AT


def _source(written: SourceConfig, analysis: AnalysisSettings) -> Source:
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


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host.strip("[]"), port))
    except OSError as err:
        listening.close()
        raise GpuwatchError(
            f"cannot listen on {host}:{port}: {err.strerror or err}",
            tried="opening the address that the daemon serves on",
            todo="end the program that holds it, or choose another port",
            code="cannot_listen",
        ) from err
    return listening


def _need_analytics() -> None:
    """One line about the missing extra instead of a traceback from deep inside."""
    from importlib.util import find_spec

    missing = [name for name in ("numpy", "fastapi", "uvicorn", "sqlalchemy") if find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"analysis needs {', '.join(missing)}", todo="pip install 'gpuwatch-stack[analytics]'")
