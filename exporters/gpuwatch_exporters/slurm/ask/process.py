"""A command with a deadline. Slurm's commands wait long for a controller that is gone, and may leave children."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gpuwatch_exporters.slurm.ask.errors import CallError

MOST_BYTES = 256 * 2**20
_CHUNK = 2**18


class Ended(NamedTuple):
    """What a command left: exit status, standard output, standard error."""

    status: int
    out: str
    err: str


class Runner:
    """Runs one command at a time, each in its own process group. `kill` ends the running one, from any thread."""

    def __init__(self) -> None:
        self._running: subprocess.Popen[bytes] | None = None
        self._closed = False

    def run(self, command: Sequence[str], timeout_seconds: float, environment: Mapping[str, str]) -> Ended:
        """The whole group is killed at the deadline. CallError: not_installed, timeout, too_large."""
        deadline = time.monotonic() + timeout_seconds
        process = _start(command, environment)
        self._running = process
        with process:
            try:
                if self._closed:
                    raise CallError(f"{command[0]}: the exporter is closed", code="timeout")
                out, err = _read(process, command, deadline)
                return Ended(process.wait(), out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))
            except BaseException:
                _kill_group(process)
                raise
            finally:
                self._running = None

    def kill(self) -> None:
        """Ends the running command, and any that is started after."""
        self._closed = True
        process = self._running
        if process is not None and process.poll() is None:
            _kill_group(process)


def _start(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            start_new_session=True,
        )
    except OSError as err:
        raise CallError(
            f"cannot run {command[0]}: {err.strerror or err}",
            todo="install Slurm's client commands, or name their folder with --slurm-bin",
            code="not_installed",
        ) from err


def _read(process: subprocess.Popen[bytes], command: Sequence[str], deadline: float) -> tuple[bytearray, bytearray]:
    """All of both pipes, and the end of the process."""
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = process.stdout.fileno(), process.stderr.fileno()
    held = {out: bytearray(), err: bytearray()}
    with selectors.DefaultSelector() as waiting:
        for pipe in held:
            waiting.register(pipe, selectors.EVENT_READ)
        while waiting.get_map():
            for key, _ in waiting.select(_left(deadline, command)):
                chunk = os.read(key.fd, _CHUNK)
                held[key.fd] += chunk
                if not chunk:
                    waiting.unregister(key.fd)
            if sum(map(len, held.values())) > MOST_BYTES:
                raise CallError(f"{command[0]} printed more than {MOST_BYTES >> 20} MiB", code="too_large")
    try:
        process.wait(_left(deadline, command))
    except subprocess.TimeoutExpired:
        raise _late(command) from None
    return held[out], held[err]


def _left(deadline: float, command: Sequence[str]) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise _late(command)
    return left


def _late(command: Sequence[str]) -> CallError:
    return CallError(
        f"{' '.join(command)} did not answer in time",
        todo="see whether slurmctld runs (scontrol ping), or raise --timeout",
        code="timeout",
    )


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """The process was not waited for yet, so that its id, and its group's, are still its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
