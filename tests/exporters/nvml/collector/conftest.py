"""A node in this process, and a node for processes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import need_program
from tests.exporters.nvml.collector.node import Node
from tests.exporters.nvml.collector.stage import Stage
from tests.fake_nvml.harness import FakeNvml


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    need_program("gcc")
    fake = FakeNvml(tmp_path / "fake", gpus=16)
    fake.load()
    stage = Stage(tmp_path, fake.write)
    try:
        yield stage
    finally:
        fake.write()  # lets go of calls that hang
        stage.close()
        fake.unload()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    need_program("gcc")
    return Node(tmp_path)
