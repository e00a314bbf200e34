"""A node of its own for an exporter that runs as a process: the library, device files, folders as /sys and /proc."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.exporters.node.trees import Tree
from tests.fake_nvml.harness import FakeNvml


class Node:
    """`say` writes the library's state; `command` is the exporter's command line on this node."""

    def __init__(self, folder: Path, gpus: int = 4) -> None:
        self._folder = folder
        self._fake = FakeNvml(folder / "fake", gpus=gpus)
        self._tree = Tree(folder / "kernel")
        self._devices = folder / "dev"
        self._devices.mkdir()
        for name in ("ctl", *map(str, range(gpus))):
            (self._devices / f"nvidia{name}").touch()
        self.say = self._fake.write

    def command(self, program: Sequence[str], *arguments: str) -> list[str]:
        """The program in the node's environment, told of the node's folders."""
        shown = {**self._fake.env(), "FAKE_NVML_DEV": str(self._devices)}
        folders = ("--path.sysfs", str(self._tree.sys), "--path.procfs", str(self._tree.proc))
        return ["/usr/bin/env", *(f"{name}={text}" for name, text in shown.items()), *program, *arguments, *folders]

    def open_to_all(self) -> None:
        """Lets other users in, as they may be in /dev."""
        for folder in (self._folder, *self._folder.parents):
            if folder.owner() == self._folder.owner() and folder != Path("/"):
                folder.chmod(folder.stat().st_mode | 0o755)
