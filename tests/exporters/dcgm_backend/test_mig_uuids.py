"""The uuids of MIG devices, asked of a library that is loaded as NVIDIA's is, in a process of its own."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import need_program

pytestmark = pytest.mark.server
ASK = "from gpuwatch_exporters.dcgm.mig_uuids import mig_uuids; print(mig_uuids(['GPU-aaaa', 'GPU-bbbb']))"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nvml")
    source = Path(__file__).with_name("mig_library.c")
    subprocess.run(
        [need_program("gcc"), "-shared", "-fPIC", "-o", folder / "libnvidia-ml.so.1", source], check=True, timeout=60
    )
    return folder


def ask(folder: Path, **environment: str) -> tuple[dict[tuple[str, int], tuple[str, ...]], str]:
    """What is found, and what the library said of itself."""
    done = subprocess.run(
        [sys.executable, "-c", ASK], capture_output=True, text=True, timeout=60, check=True,
        env={**os.environ, "LD_LIBRARY_PATH": str(folder), **environment},
    )  # fmt: skip
    return ast.literal_eval(done.stdout), done.stderr


def test_devices_by_gpu_and_instance_and_the_library_is_shut(library: Path) -> None:
    found, told = ask(library)
    assert found == {("GPU-bbbb", 1): ("MIG-a",), ("GPU-bbbb", 5): ("MIG-b", "MIG-c")}
    assert told.strip() == "still open: 0"


def test_without_a_driver_none_is_known(library: Path) -> None:
    assert ask(library, MIG_LIBRARY_FAILS="init")[0] == {}


def test_a_call_that_fails_half_way_ends_the_looking_and_shuts_the_library(library: Path) -> None:
    found, told = ask(library, MIG_LIBRARY_FAILS="instance")
    assert found == {}
    assert told.strip() == "still open: 0"


def test_without_the_library_none_is_known(tmp_path: Path) -> None:
    assert ask(tmp_path)[0] == {}
