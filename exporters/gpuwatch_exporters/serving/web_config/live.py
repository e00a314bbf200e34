"""The web configuration in force: read at start, read again when a file of it changes, kept when the new is bad."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gpuwatch.errors import GpuwatchError, SettingsError
from gpuwatch_exporters.serving.web.message import Request
from gpuwatch_exporters.serving.web_config.bucket import Bucket
from gpuwatch_exporters.serving.web_config.document import WebConfig, read_web_config

if TYPE_CHECKING:
    import ssl

    from gpuwatch_exporters.serving.web_config.passwords import Passwords

log = logging.getLogger(__name__)
_LOOK_SECONDS = 1.0
_Stat = tuple[int, ...] | None


class LiveWebConfig:
    """Settings of the server and guard of the routes, from a file. `told` is called with the success of each reading.

    The first reading raises what is wrong; a later one that fails is logged and counted, and the old holds on.
    """

    def __init__(self, file: Path, told: Callable[[bool], None]) -> None:
        self._file = file
        self._report = told
        self._lock = threading.Lock()
        self._named: list[Path] = []  # by the configuration: certificates and keys
        self._seen: tuple[_Stat, ...] = ()
        self._looked = 0.0
        self.generation = 0
        self.tls: ssl.SSLContext | None = None
        self.header_lines = b""
        self._config = WebConfig()
        self._passwords: Passwords | None = None
        self._bucket: Bucket | None = None
        self._read()

    def refresh(self) -> None:
        """Looks at the files, at most once a second, and reads them when one changed."""
        now = time.monotonic()
        if now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        if self._signature(_stat(self._file)) != self._seen:
            self.reload()

    def reload(self) -> bool:
        """Reads the files now; False when the old configuration has to hold on."""
        with self._lock:
            try:
                self._read()
            except GpuwatchError as err:
                log.error("web configuration not taken, the old one holds: %s", err.what)
                self._report(False)
                return False
            log.info("web configuration taken")
            return True

    def admits(self, sock: ssl.SSLSocket) -> bool:
        """Whether the client's certificate carries an allowed name."""
        allowed = self._config.tls.allowed_sans if self._config.tls else frozenset()
        if not allowed:
            return True
        from gpuwatch_exporters.serving.web_config.tls import san_allowed

        return san_allowed(sock.getpeercert(), allowed)

    def allows(self, request: Request) -> bool | Callable[[], bool]:
        """Whether name and password are right, where some are asked for."""
        self.refresh()
        passwords = self._passwords
        return True if passwords is None else passwords.check(request.headers.get("authorization", ""))

    def knows(self, request: Request) -> bool:
        """An allowed request proved who it comes from by its password or its certificate."""
        return self._passwords is not None or request.certified

    def too_many(self) -> bool:
        """Whether the limit of requests is reached; each call counts as one."""
        return self._bucket is not None and not self._bucket.take()

    def _read(self) -> None:
        # Each file is looked at before it is read: one that changes meanwhile is read again.
        own = _stat(self._file)
        try:
            config = read_web_config(self._file)
            self._named = config.files()
        finally:
            self._seen = self._signature(own)
        if self.tls is not None and config.tls is None:
            raise SettingsError(f"{self._file}: TLS cannot be taken away from a running exporter: restart it")
        self._take(config)
        self._report(True)

    def _take(self, config: WebConfig) -> None:
        """Makes all parts before it puts any in force."""
        context, passwords = None, None
        if config.tls is not None:
            from gpuwatch_exporters.serving.web_config.tls import tls_context

            context = tls_context(config.tls)
        if config.users:
            from gpuwatch_exporters.serving.web_config.passwords import Passwords

            passwords = Passwords(config.users)
            if context is None:
                log.warning("passwords travel in clear: %s asks for them and has no tls_server_config", self._file)
        self.tls, self._passwords, self._config = context, passwords, config
        self._bucket = Bucket(*config.rate) if config.rate else None
        self.header_lines = "".join(f"{name}: {text}\r\n" for name, text in config.headers.items()).encode()
        self.generation += 1

    def _signature(self, own: _Stat) -> tuple[_Stat, ...]:
        return (own, *(_stat(file) for file in self._named))


def _stat(file: Path) -> _Stat:
    """Changes when the file does, also when a link on the way to it is turned elsewhere."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev)
