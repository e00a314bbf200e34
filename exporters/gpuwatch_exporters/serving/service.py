"""One exporter in service: cycles, page, HTTP, text file, systemd; and the process around it."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import threading
from collections.abc import Mapping

from gpuwatch.errors import SettingsError
from gpuwatch_exporters.serving.cycles import Cycles, Outcome
from gpuwatch_exporters.serving.exporter import Exporter
from gpuwatch_exporters.serving.listening import is_loopback, listen, told_address
from gpuwatch_exporters.serving.notify import Notifier
from gpuwatch_exporters.serving.open_access import OpenAccess
from gpuwatch_exporters.serving.options import Listen
from gpuwatch_exporters.serving.page import Pages
from gpuwatch_exporters.serving.routes import Routes
from gpuwatch_exporters.serving.self_metrics import SelfMetrics
from gpuwatch_exporters.serving.signals import SignalBox
from gpuwatch_exporters.serving.textfile import TextFile
from gpuwatch_exporters.serving.web.server import Server

log = logging.getLogger(__name__)
_CLOSE_SECONDS, _CYCLE_SECONDS, _HTTP_SECONDS = 2.0, 1.0, 0.5  # together under the 5 s that a stop may take
_TICK_SECONDS = 5.0
_SWITCH_SECONDS = 0.0005


class Service:
    """The parts of a served exporter, put together. Start, then `tick` now and then, then stop."""

    def __init__(
        self, exporter: Exporter, options: argparse.Namespace, environment: Mapping[str, str] | None = None
    ) -> None:
        self._exporter = exporter
        self.cycles = Cycles(exporter, options.interval, self._finished)
        self.metrics = SelfMetrics(exporter.name, self.cycles)
        self.pages = Pages(self.metrics, self.cycles)
        self._notifier = Notifier(environment)
        self._textfile = (
            TextFile(options.textfile, self.pages, self.metrics, exporter.name) if options.textfile else None
        )
        self.address = ""
        self._server: Server | None = None
        if options.listen is not None:
            self._server = self._http(options.listen, options.web_config_file)
        elif self._textfile is None:
            raise SettingsError("--listen off without --textfile: nobody could read anything")

    def _http(self, where: Listen, web_config_file: object) -> Server:
        access = OpenAccess()
        listener = listen(where)
        self.address = told_address(listener)
        routes = Routes(self._exporter, self.cycles, self.pages, self.metrics, access, loopback=is_loopback(listener))
        self._access = access
        return Server(listener, routes, access)

    def start(self) -> None:
        """Begins to serve and to collect; what is served before the first cycle holds no values."""
        if self._textfile:
            self._textfile.write()
        if self._server:
            self._server.start()
            log.info("%s exporter on %s", self._exporter.name, self.address)
        self.cycles.start()
        self._notifier.send("READY=1")

    def wait_seconds(self) -> float:
        """How long the main thread may sleep between two ticks."""
        watchdog = self._notifier.watchdog_seconds
        return _TICK_SECONDS if watchdog is None else min(_TICK_SECONDS, watchdog / 3)

    def tick(self) -> None:
        """What has to happen although a cycle hangs."""
        if self.cycles.stuck():
            self._notifier.status("a cycle hangs; no values are served")
        else:
            self._notifier.send("WATCHDOG=1")
        if self._textfile:
            self._textfile.withdraw()

    def act(self, name: str) -> None:
        """Runs an action of the exporter for a signal, on a thread of its own."""
        action = self._exporter.actions().get(name)
        if action is None:
            log.warning("the %s exporter has no %s", self._exporter.name, name)
            return

        def work() -> None:
            try:
                log.info("%s: %s", name, action())
            except Exception as err:
                log.error("%s failed: %s", name, err)
            self.cycles.soon()

        threading.Thread(target=work, name=name, daemon=True).start()

    def reload(self) -> None:
        """Reads the web configuration anew."""
        self._access.reload()

    def stop(self) -> bool:
        """Ends everything within 4 s; False when something still hangs and only the end of the process ends it."""
        self._notifier.send("STOPPING=1")
        closing = threading.Thread(target=self._close_exporter, name="close", daemon=True)
        if self._server:
            self._server.stop(_HTTP_SECONDS)
        ended = self.cycles.stop(_CYCLE_SECONDS)
        closing.start()
        closing.join(_CLOSE_SECONDS)
        if self._textfile:
            self._textfile.remove()
        return ended and not closing.is_alive()

    def _close_exporter(self) -> None:
        try:
            self._exporter.close()
        except Exception:
            log.exception("the exporter did not close well")

    def _finished(self, outcome: Outcome) -> None:
        self.pages.put(outcome)
        if self._textfile:
            self._textfile.write()
        good = outcome.text is not None
        self._notifier.status("collecting" if good else f"cycle failed: {outcome.told}")


def run(exporter: Exporter, options: argparse.Namespace) -> int:
    """Serves until SIGTERM or SIGINT and gives the exit code: 0, or 1 when the one cycle of --once failed. SIGUSR1
    releases, SIGUSR2 resumes, SIGHUP reads the web configuration anew. SettingsError on
    options that do not go together."""
    configure_logging(options.log_level)
    # A thread that computes keeps the others waiting for so long each time they come back from a system call.
    sys.setswitchinterval(_SWITCH_SECONDS)
    if options.once:
        from gpuwatch_exporters.serving.single import run_once

        return run_once(exporter, options)
    signals = SignalBox()
    service = Service(exporter, options)
    service.start()
    while (name := signals.wait(service.wait_seconds())) not in ("SIGTERM", "SIGINT"):
        if name == "SIGHUP":
            service.reload()
        elif name is not None:
            service.act("release" if name == "SIGUSR1" else "resume")
        service.tick()
    log.info("%s: stopping", name)
    signals.exit_at_the_next_one()
    if not service.stop():
        log.warning("something hangs; ending without it")
        leave(0)
    return 0


def configure_logging(level: str) -> None:
    """Lines on stderr without a time: whoever collects them adds it."""
    logging.basicConfig(stream=sys.stderr, level=level.upper(), format="%(levelname)s %(message)s", force=True)


def leave(code: int) -> None:
    """Ends the process at once: a thread that hangs in a driver would hold up the interpreter's own way out."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
