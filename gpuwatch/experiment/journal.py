"""The file that keeps results as they come: one JSON line each, so that an interrupted experiment goes on later.

A file belongs to one experiment (protocol, options, traces, release). What is not that is refused and left as it is.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from gpuwatch import __version__
from gpuwatch.errors import InputError, MissingExtraError
from gpuwatch.experiment.protocol import PROTOCOLS, Option
from gpuwatch.experiment.task import Cell, Task

SCHEMA = "gpuwatch.replay-run/1"
_HEAD = f'{{"schema": "{SCHEMA}", '
_ANOTHER = "name another file with --resume, or move this one away"


class Journal:
    """The results in `path` that belong to `tasks`, and the place for new ones. Use it in a `with`.

    Opening raises InputError when the file cannot be used: unreadable, locked, no journal, another experiment's. A
    last line that was not finished (the writer was killed) is dropped when the first new result is written.
    """

    def __init__(self, path: Path, tasks: Sequence[Task]) -> None:
        self.path = path
        self.known: dict[Cell, Any] = {}
        self._tasks = tasks
        self._cells = {task.cell for task in tasks}
        self._by_workload = {task.workload: _identity(task) for task in tasks}
        self._file: BinaryIO | None = None
        self._whole = 0  # bytes up to the end of the last finished line

    def __enter__(self) -> Journal:
        self._file = _opened(self.path)
        try:
            self._read()
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, task: Task, result: Any) -> None:
        """Writes one result and hands it to the system before it returns. InputError when it cannot be written."""
        line = _HEAD + json.dumps({**_identity(task), **_cell_fields(task)})[1:-1] + ', "run": '
        data = line.encode() + _adapter(task.protocol).dump_json(result) + b"}\n"
        assert self._file is not None, "a journal is used in a with"
        try:
            if self._file.seek(0, os.SEEK_END) != self._whole:
                self._file.truncate(self._whole)
            self._file.seek(self._whole)
            self._file.write(data)
            self._file.flush()
        except OSError as err:
            raise InputError(f"cannot write {self.path}: {err.strerror}", todo="free space, then run it again") from err
        self._whole += len(data)
        self.known[task.cell] = result

    def _read(self) -> None:
        assert self._file is not None
        try:
            text = self._file.read()
        except OSError as err:
            raise InputError(f"cannot read {self.path}: {err.strerror}", todo=_ANOTHER) from err
        *lines, torn = text.split(b"\n")
        for number, line in enumerate(lines, start=1):
            self._take(number, line)
        head = _HEAD.encode()
        if torn and not (torn.startswith(head) or head.startswith(torn)):
            raise self._garbage(len(lines) + 1)
        self._whole = len(text) - len(torn)

    def _take(self, number: int, line: bytes) -> None:
        try:
            written = json.loads(line)
        except (ValueError, RecursionError) as err:
            raise self._garbage(number) from err
        if not isinstance(written, dict) or written.get("schema") != SCHEMA:
            raise self._garbage(number)
        if not self._tasks:
            return
        self._check(number, written)
        cell = (written.get("workload"), written.get("policy"), written.get("seed"))
        if cell in self._cells:
            self.known[cell] = self._result(number, written.get("run"))

    def _check(self, number: int, written: Mapping[str, Any]) -> None:
        """Refuses a line of another experiment; of workloads that are not asked for, the trace is not looked at."""
        asked = self._by_workload.get(str(written.get("workload")))
        if asked is None:
            asked = {name: wanted for name, wanted in _identity(self._tasks[0]).items() if name != "trace"}
        for name, wanted in asked.items():
            if written.get(name) != wanted:
                raise InputError(
                    f"{self.path} holds another experiment: {name} is {_told(written.get(name))} in line {number}",
                    tried=f"looking there for runs with {name} {_told(wanted)}",
                    todo=_ANOTHER,
                )

    def _result(self, number: int, run: Any) -> Any:
        from pydantic import ValidationError

        try:
            return _adapter(self._tasks[0].protocol).validate_json(json.dumps(run))
        except ValidationError as err:
            raise self._garbage(number) from err

    def _garbage(self, number: int) -> InputError:
        return InputError(
            f"{self.path} holds no results of a replay: line {number} is none",
            tried=f"reading {SCHEMA} lines; the file is left as it is",
            todo=_ANOTHER,
        )


def _identity(task: Task) -> dict[str, Any]:
    return {
        "release": __version__,
        "protocol": task.protocol,
        "options": dict(task.options),
        "trace": task.digest,
    }


def _cell_fields(task: Task) -> dict[str, Option]:
    return {"workload": task.workload, "policy": task.policy, "seed": task.seed}


def _told(what: Any) -> str:
    return json.dumps(what).replace('"', "")


def _adapter(protocol: str) -> Any:
    try:
        from pydantic import TypeAdapter
    except ModuleNotFoundError as err:
        raise MissingExtraError("keeping results needs pydantic", todo="pip install 'gpuwatch-stack[cli]'") from err
    return TypeAdapter(PROTOCOLS.get(protocol).result)


def _opened(path: Path) -> BinaryIO:
    """The file for reading and writing, made if need be, and locked: two writers would tear each other's lines."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
    except OSError as err:
        raise InputError(f"cannot open {path}: {err.strerror}", todo="check the path and its permissions") from err
    file = os.fdopen(handle, "r+b") if stat.S_ISREG(os.fstat(handle).st_mode) else None
    if file is None:
        os.close(handle)
        raise InputError(f"{path} is no plain file", todo="name a plain file with --resume")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as err:
        file.close()
        raise InputError(f"another replay writes to {path} now", todo="wait for it, or name another file") from err
    return file
