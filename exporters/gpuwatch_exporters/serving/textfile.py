"""The page as a file for node_exporter's textfile collector: whole or not at all, and never with values that no longer
hold."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from pathlib import Path

from gpuwatch.errors import SettingsError
from gpuwatch.files import replace_file
from gpuwatch_exporters.exposition import exact, family, labels
from gpuwatch_exporters.serving.page import Pages
from gpuwatch_exporters.serving.self_metrics import SelfMetrics

log = logging.getLogger(__name__)
_RIGHTS = 0o644  # whoever reads it runs as somebody else
_NAME = "gpuwatch_exporter_textfile_timestamp_seconds"


class TextFile:
    """Writes the page of `pages` to `path`. `write` may come from any thread; OSError is counted and logged once."""

    def __init__(self, path: Path, pages: Pages, metrics: SelfMetrics, exporter_name: str) -> None:
        self.path = path
        self._pages = pages
        self._metrics = metrics
        self._own = labels([("exporter", exporter_name)])
        self._lock = threading.Lock()
        self._had_values = False
        self._told = False
        self._closed = False
        folder = path.parent
        if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            raise SettingsError(
                f"--textfile {path}: nothing can be written in {folder}",
                todo="make the folder and let the user of the exporter write in it",
            )
        if path.suffix != ".prom":
            log.warning("--textfile %s: node_exporter reads only files that end in .prom", path)

    def write(self) -> bool:
        """Puts the page that holds now in the file's place."""
        with self._lock:
            if self._closed:
                return False
            has_values = self._pages.ready()
            text = self._pages.file_text() + self._stamp()
            try:
                replace_file(self.path, text, mode=_RIGHTS)
            except OSError as err:
                self._metrics.textfile_failures += 1
                if not self._told:
                    log.error("text file %s not written: %s", self.path, err.strerror or err)
                self._told = True
                return False
            self._had_values, self._told = has_values, False
            return True

    def withdraw(self) -> None:
        """Writes the file without values when the values it holds no longer do: the writing cycle hangs."""
        if self._had_values and not self._pages.ready():
            self.write()

    def remove(self) -> None:
        """An exporter that has ended has no values: a file left behind would be read on for ever."""
        with self._lock, contextlib.suppress(OSError):
            self._closed = True
            self.path.unlink(missing_ok=True)

    def _stamp(self) -> str:
        told = family(_NAME, "gauge", "Unix time at which this file was written.")
        return f"{told}{_NAME}{{{self._own}}} {exact(round(time.time(), 3))}\n"
