"""A real exporter that is told by a file what to do: `python -m tests.exporters.serving.tiny --page FILE ...`.

A cycle gives the file's text; without the file it fails; the text "hang" makes it hang in C, as a driver does, and
"hang close" makes it hang there when it is closed too; "mask" tells which signals a program that it starts has blocked.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from gpuwatch_exporters.serving import add_serving_arguments, run
from gpuwatch_exporters.serving.exporter import Exporter
from gpuwatch_exporters.serving.outside import fill_defaults

from gpuwatch.errors import GpuwatchError

PAGE = '# HELP tiny_ratio A value.\n# TYPE tiny_ratio gauge\ntiny_ratio{node="a"} 0.5\n'


class Tiny(Exporter):
    """One gauge from a file."""

    name = "tiny"
    help = "Serves a file."

    def __init__(self, page: Path) -> None:
        self.page = page
        self.cycles = 0
        self.state = "collecting"
        self.closed = 0

    def cycle(self) -> str:
        self.cycles += 1
        if not self.page.exists():
            raise GpuwatchError("no page", tried="to read it")
        text = self.page.read_text()
        if text.startswith("hang"):
            ctypes.CDLL(None).sleep(3600)
        if text == "mask":
            return f"# {subprocess.check_output(['grep', 'SigBlk', '/proc/self/status'], text=True)}"
        return text if self.state == "collecting" else "# released\n"

    def notes(self) -> list[str]:
        return [f"file {self.page.name}", "<b>&"]

    def actions(self) -> Mapping[str, Callable[[], str]]:
        return {"release": lambda: self._become("released"), "resume": lambda: self._become("collecting")}

    def _become(self, state: str) -> str:
        self.state = state
        return state

    def close(self) -> None:
        self.closed += 1
        if self.page.exists() and self.page.read_text() == "hang close":
            ctypes.CDLL(None).sleep(3600)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    made.add_argument("--page", type=Path, required=True)
    add_serving_arguments(made)
    return made


def main(arguments: list[str]) -> int:
    options = parser()
    fill_defaults(options, arguments)
    given = options.parse_args(arguments)
    try:
        return run(Tiny(given.page), given)
    except GpuwatchError as err:
        print("\n".join(err.lines()), file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
