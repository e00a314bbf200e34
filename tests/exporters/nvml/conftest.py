"""The stand-in for NVIDIA's library in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pynvml as nv
import pytest

from tests.conftest import need_program
from tests.fake_nvml.harness import FakeNvml


@pytest.fixture
def fake_nvml(tmp_path: Path) -> Iterator[FakeNvml]:
    """Opened as the only user of it; eight H100 unless the test writes something else."""
    need_program("gcc")
    fake = FakeNvml(tmp_path / "fake_nvml")
    fake.load()
    nv.nvmlInitWithFlags(0)
    try:
        yield fake
    finally:
        nv.nvmlShutdown()
        fake.unload()
