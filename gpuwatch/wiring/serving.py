"""A daemon with its store, API and page, and the process that serves it."""

from __future__ import annotations

import logging
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuwatch.clock import Clock
from gpuwatch.config import Config
from gpuwatch.errors import GpuwatchError, SettingsError
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.sources.base import Source
from gpuwatch.wiring.inputs import demo_settings, named, need_analytics, source_of

if TYPE_CHECKING:
    from fastapi import FastAPI

    from gpuwatch.daemon.loop import Daemon


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


def build_daemon(config: Config, clock: Clock | None = None) -> Served:
    """The daemon that a configuration describes. Every fault of the configuration is told here, before it starts."""
    need_analytics()
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
        [source_of(each, config.analysis) for each in config.sources],
        config.analysis,
        cluster=named(config),
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
    need_analytics()
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
    from gpuwatch.engine import Placements
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
    app = create_app(daemon.state, Placements(), tokens=tokens, pages=pages(daemon.state))
    return Served(daemon, app, host, port)


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
