"""Reads the kernel log for faults of GPUs, from the oldest record that the kernel still has, on a thread of its own.

Reading costs nothing while the kernel is silent. Without the right to read it (CAP_SYSLOG where
kernel.dmesg_restrict is set, else root) the feature is off and says so.
"""

from __future__ import annotations

import errno
import logging
import os
import select
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

from gpuwatch_exporters.device.families import xid as of
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.xid.book import XidBook
from gpuwatch_exporters.nvml.xid.line import Told, parse

log = logging.getLogger(__name__)
WITNESS = "kernel_log"
STOP_SECONDS = 1.0
_RECORD_BYTES = 1 << 16  # /dev/kmsg gives one record a read, of 8 KiB at most
_FILE_SECONDS = 0.2  # how often a plain file is looked at for more


class KernelLog:
    """The reader and its thread. `reason` is why it does not read: not_started, no_permission, not_found, ..., or ""
    while it reads. `lines` and `overruns` only grow."""

    def __init__(self, book: XidBook, path: Path = Path("/dev/kmsg"), now: Callable[[], float] = time.time) -> None:
        """now: Unix time in seconds."""
        self.reason = "not_started"
        self.lines = 0
        self.overruns = 0
        self._book, self._path, self._now = book, path, now
        self._thread: threading.Thread | None = None
        self._wake: tuple[int, int] | None = None
        self._stopping = False

    def start(self) -> None:
        """Begins to read, once: never again after a stop; where it could not, the next call tries again. Never raises:
        what stands against it is in `reason`."""
        if self._thread is not None or self.reason == "stopped":
            return
        try:
            # Not blocking: at the end of what is there, waiting is done by poll, which stop() can end.
            source = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as err:
            before, self.reason = self.reason, _reason(err)
            if self.reason != before:  # it is tried again with each cycle, and told once
                log.warning("the kernel log is not read: %s: %s", self._path, err.strerror)
            return
        self.reason, self._stopping, self._wake = "", False, os.pipe()
        self._thread = threading.Thread(target=self._run, args=(source,), name="kernel-log", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, in a fraction of a second."""
        thread, wake = self._thread, self._wake
        if thread is None or wake is None:
            return
        self._stopping = True
        os.write(wake[1], b"x")
        thread.join(STOP_SECONDS)
        if not thread.is_alive():
            for end in wake:
                os.close(end)
        self._thread, self._wake, self.reason = None, None, "stopped"

    def values(self) -> list[Value]:
        """What the reading itself came to; nothing while it is off."""
        if self.reason:
            return []
        return [Value(of.LOG_LINES, (), self.lines), Value(of.LOG_LOST, (), self.overruns)]

    def _run(self, source: int) -> None:
        try:
            self._follow(source)
        except OSError as err:
            self.reason = _reason(err)
            log.warning("the kernel log is not read any more: %s: %s", self._path, err.strerror)
        finally:
            os.close(source)

    def _follow(self, source: int) -> None:
        assert self._wake is not None
        plain = stat.S_ISREG(os.fstat(source).st_mode)
        poll = select.poll()
        poll.register(self._wake[0], select.POLLIN)
        if not plain:
            poll.register(source, select.POLLIN)
        rest, live = b"", False
        while not self._stopping:
            chunk = self._read(source)
            if chunk:
                *records, rest = (rest + chunk).split(b"\n")
                for record in records:
                    self._file(record, live)
                rest = rest[-_RECORD_BYTES:]
                continue
            live = True  # what comes from now on has just happened
            ready = dict(poll.poll(1000 * _FILE_SECONDS if plain else None))
            if ready.get(source, 0) & (select.POLLHUP | select.POLLNVAL) and not ready[source] & select.POLLIN:
                poll.unregister(source)  # the writer of a pipe left

    def _read(self, source: int) -> bytes:
        """More of the log; empty when there is none at present."""
        while True:
            try:
                return os.read(source, _RECORD_BYTES)
            except BlockingIOError:
                return b""
            except OSError as err:
                if err.errno != errno.EPIPE:
                    raise
                self.overruns += 1  # the next read goes on with the oldest record that is still there

    def _file(self, record: bytes, live: bool) -> None:
        if record[:1] == b" ":  # facts about the record before it
            return
        self.lines += 1
        told = parse(record)
        if told is None:
            return
        # The clock of the log drifts from the other clocks over weeks, so it serves for old records only.
        at = self._now() if live else self._now() - time.monotonic() + told.uptime_seconds
        self._tell(told, at)

    def _tell(self, told: Told, at: float) -> None:
        if told.kind == "xid":
            if self._book.xid(WITNESS, told.pci_bus_id, told.code, at):
                log.debug("XID %d on %s", told.code, told.pci_bus_id)
        elif told.kind in ("sxid", "sxid_fatal"):
            severity = "fatal" if told.kind == "sxid_fatal" else "non_fatal"
            self._book.count("switch", told.pci_bus_id, str(told.code), severity)
        else:
            self._book.count("log", told.pci_bus_id, told.kind)


def _reason(err: OSError) -> str:
    if err.errno in (errno.EACCES, errno.EPERM):
        return "no_permission"
    return "not_found" if err.errno == errno.ENOENT else (errno.errorcode.get(err.errno or 0, "error")).lower()
