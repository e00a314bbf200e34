"""One exporter in service: cycles, page, HTTP, text file and what systemd is told, put together."""

from __future__ import annotations

import argparse
import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from gpuwatch.errors import SettingsError
from gpuwatch_exporters.serving.cycles import Cycles, Outcome
from gpuwatch_exporters.serving.exporter import Exporter
from gpuwatch_exporters.serving.listening import is_loopback, listen, told_address
from gpuwatch_exporters.serving.notify import Notifier
from gpuwatch_exporters.serving.open_access import OpenAccess
from gpuwatch_exporters.serving.options import Listen
from gpuwatch_exporters.serving.page import Pages
from gpuwatch_exporters.serving.routes import Guard, Routes
from gpuwatch_exporters.serving.self_metrics import SelfMetrics
from gpuwatch_exporters.serving.textfile import TextFile
from gpuwatch_exporters.serving.web.server import Server
from gpuwatch_exporters.serving.web.settings import Settings

log = logging.getLogger(__name__)
_CLOSE_SECONDS, _CYCLE_SECONDS, _HTTP_SECONDS = 2.0, 1.0, 0.5  # together under the 5 s that a stop may take
_TICK_SECONDS = 5.0
_SILENT_SECONDS = 15.0


class Access(Settings, Guard, Protocol):
    """What the web configuration decides."""

    def reload(self) -> bool:
        """Reads it anew; False when the old one holds on."""
        ...


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
        self.access: Access | None = None
        self._server: Server | None = None
        if options.listen is not None:
            self._server = self._http(options.listen, options.web_config_file)
        elif self._textfile is None:
            raise SettingsError("--listen off without --textfile: nobody could read anything")

    def _http(self, where: Listen, web_config_file: Path | None) -> Server:
        access = self._access(web_config_file)
        self.access = access
        listener = listen(where)
        self.address = told_address(listener)
        routes = Routes(self._exporter, self.cycles, self.pages, self.metrics, access, loopback=is_loopback(listener))
        return Server(listener, routes, access)

    def _access(self, web_config_file: Path | None) -> Access:
        if web_config_file is None:
            return OpenAccess()
        # YAML, TLS and bcrypt are 10 MB of memory that only who asks for them pays.
        from gpuwatch_exporters.serving.web_config.live import LiveWebConfig

        return LiveWebConfig(web_config_file, self.metrics.reloaded)

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
        elif self._server is None or self._server.silent_seconds() < _SILENT_SECONDS:
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
        if self.access:
            self.access.reload()

    def stop(self, cycle_seconds: float = _CYCLE_SECONDS) -> bool:
        """Ends everything within 4 s; False when something still hangs and only the end of the process ends it.

        cycle_seconds: how long a cycle that runs may take to end.
        """
        self._notifier.send("STOPPING=1")
        closing = threading.Thread(target=self._close_exporter, name="close", daemon=True)
        if self._server:
            self._server.stop(_HTTP_SECONDS)
        ended = self.cycles.stop(cycle_seconds)
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
