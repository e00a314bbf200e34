"""A driver updated under a running process: its library is another file, and the loader keeps to the old one."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pynvml as nv
import pytest
from gpuwatch_exporters.nvml.library import FILE, load_changed

from tests.conftest import need_program


def build(folder: Path, version: str, code: int) -> Path:
    """A library whose opening answers `code`, called as the driver of this version calls its own."""
    path = folder / f"libnvidia-ml.so.{version}"
    source = folder / f"{version}.c"
    source.write_text(f"int nvmlInitWithFlags(unsigned f) {{ (void)f; return {code}; }}\n")
    command = [need_program("gcc"), "-shared", "-fPIC", f"-Wl,-soname,{FILE}", "-o", str(path), str(source)]
    subprocess.run(command, check=True)
    link = folder / FILE
    link.unlink(missing_ok=True)
    link.symlink_to(path.name)
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    build(tmp_path, "580.1", nv.NVML_ERROR_LIB_RM_VERSION_MISMATCH)
    monkeypatch.setattr(nv, "nvmlLib", ctypes.CDLL(str(tmp_path / FILE)))
    monkeypatch.setattr(nv, "_nvmlGetFunctionPointer_cache", {})
    return tmp_path


def opened() -> int:
    """The code of an opening through nvidia-ml-py."""
    try:
        nv.nvmlInitWithFlags(0)
    except nv.NVMLError as err:
        return int(err.value)
    return 0


def test_the_new_file_is_loaded_beside_the_old_one(folder: Path) -> None:
    assert opened() == nv.NVML_ERROR_LIB_RM_VERSION_MISMATCH
    build(folder, "590.2", nv.NVML_SUCCESS)
    assert load_changed()
    assert opened() == 0
    assert not load_changed()


def test_the_same_file_is_not_loaded_twice(folder: Path) -> None:
    assert not load_changed()
    assert opened() == nv.NVML_ERROR_LIB_RM_VERSION_MISMATCH


def test_a_file_that_is_gone_leaves_the_old_one(folder: Path) -> None:
    (folder / FILE).unlink()
    assert not load_changed()
    (folder / FILE).write_text("not a library")
    assert not load_changed()
    assert opened() == nv.NVML_ERROR_LIB_RM_VERSION_MISMATCH
