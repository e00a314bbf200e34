"""Slurm's own commands. scontrol prints nodes as JSON since 23.02; before, sinfo does, which since then prints groups
of nodes instead. squeue has printed jobs in all these releases. Where scontrol knows no JSON, partitions and
reservations come from its one-line text."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from gpuwatch_exporters.slurm.ask.errors import CallError, told_reason
from gpuwatch_exporters.slurm.ask.process import Runner
from gpuwatch_exporters.slurm.ask.source import Answer
from gpuwatch_exporters.slurm.read.document import Document
from gpuwatch_exporters.slurm.read.partitions import oneline_rows

_JSON = {
    "nodes": ("scontrol", "--all", "--json", "show", "nodes"),
    "jobs": ("squeue", "--all", "--local", "--json"),
    "partitions": ("scontrol", "--all", "--json", "show", "partitions"),
    "reservations": ("scontrol", "--all", "--json", "show", "reservations"),
}
_NODES_BEFORE = ("sinfo", "--all", "--json")
_ONE_LINE = {
    "partitions": ("scontrol", "--all", "--oneliner", "show", "partitions"),
    "reservations": ("scontrol", "--all", "--oneliner", "show", "reservations"),
}
_NO_SUCH_OPTION = re.compile(r"(unrecognized|invalid|unknown) option", re.IGNORECASE)
_CLUSTER = re.compile(r"^ClusterName\s*=\s*(\S+)", re.MULTILINE | re.IGNORECASE)


class Commands:
    """Runs the commands, found in `folder` or on the path."""

    name: ClassVar[str] = "commands"

    def __init__(self, folder: Path | None = None, environment: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._environment = quiet_environment(os.environ if environment is None else environment)
        self._runner = Runner()

    def ask(self, call: str, timeout_seconds: float) -> Answer:
        # Asked anew each time: an unknown option ends a command at once, and Slurm may be upgraded meanwhile.
        printed = self._run(_JSON[call], timeout_seconds)
        if printed is not None:
            return Document(printed)
        if call in _ONE_LINE and (printed := self._run(_ONE_LINE[call], timeout_seconds)) is not None:
            return _Lines(printed)
        if call == "nodes" and (printed := self._run(_NODES_BEFORE, timeout_seconds)) is not None:
            return Document(printed)
        raise CallError(f"{_JSON[call][0]} knows no --json", todo="Slurm 22.05 or later is needed", code="bad_answer")

    def cluster(self, timeout_seconds: float) -> str:
        found = _CLUSTER.search(self._run(("scontrol", "show", "config"), timeout_seconds) or "")
        return found[1] if found else ""

    def told(self) -> str:
        return f"asks Slurm's commands in {self._folder or 'the path'}"

    def close(self) -> None:
        self._runner.kill()

    def _run(self, command: tuple[str, ...], timeout_seconds: float) -> str | None:
        """What the command prints; None where it does not know one of its options."""
        program = str(self._folder / command[0]) if self._folder else command[0]
        ended = self._runner.run((program, *command[1:]), timeout_seconds, self._environment)
        if ended.status == 0:
            return ended.out
        told = " ".join((ended.err.strip() or ended.out.strip()).split())
        if _NO_SUCH_OPTION.search(told):
            return None
        raise CallError(
            f"{' '.join(command)} ended with {ended.status}: {told[:300] or 'it said nothing'}",
            code=told_reason(told, "exit_status"),
        )


class _Lines:
    """The one-line text of scontrol as an Answer."""

    def __init__(self, printed: str) -> None:
        self._printed = printed
        self.rest: dict[str, Any] = {}
        self.found = True

    def rows(self, key: str) -> Iterator[Any]:
        return oneline_rows(self._printed)


def quiet_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what would filter or reshape the answers (SQUEUE_STATES, SINFO_FORMAT, SLURM_TIME_FORMAT ...), and with
    lists of array tasks of any length, which are cut short otherwise."""
    left_out = ("SQUEUE_", "SINFO_", "SCONTROL_", "SLURM_TIME_FORMAT")
    kept = {name: held for name, held in environment.items() if not name.startswith(left_out)}
    return {**kept, "SLURM_BITSTR_LEN": "0", "LC_ALL": "C"}
