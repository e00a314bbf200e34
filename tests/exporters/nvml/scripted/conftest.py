"""The scripted library, compiled once."""

from __future__ import annotations

import ctypes

import pynvml as nv
import pytest

from tests.conftest import need_program
from tests.exporters.nvml.scripted.library import Scripted, build


@pytest.fixture(scope="session")
def scripted_library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return build(need_program("gcc"), tmp_path_factory.mktemp("scripted"))


@pytest.fixture
def library(scripted_library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    """In place of NVIDIA's."""
    monkeypatch.setattr(nv, "nvmlLib", scripted_library)
    monkeypatch.setattr(nv, "_nvmlGetFunctionPointer_cache", {})
    return Scripted(scripted_library)
