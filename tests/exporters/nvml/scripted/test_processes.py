"""Processes: only those that are there, each once, memory only when all of it is known."""

from __future__ import annotations

from pathlib import Path

import pynvml as nv
import pytest
from gpuwatch_exporters.device.frame import Process
from gpuwatch_exporters.nvml.groups.processes import Processes

from tests.exporters.nvml.scripted.library import Scripted, read, told

NOT_TOLD = 0xFFFFFFFFFFFFFFFF


@pytest.fixture
def procfs(tmp_path: Path) -> Path:
    for pid, name in ((10, "python3"), (11, "mps"), (12, "xorg")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "comm").write_text(f"{name}\n")
    return tmp_path


def test_ended_processes_are_left_out_and_counted(library: Scripted, procfs: Path) -> None:
    library.process(10, 1000)
    library.process(4242, 5000)
    board = library.board()
    assert told(read(Processes(procfs), board)) == {
        ("processes", "compute"): 1,
        ("processes", "graphics"): 0,
        ("processes", "mps"): 0,
        ("processes_stale",): 1,
        ("processes_memory_bytes",): 1000,
    }
    assert board.kept["processes"] == (Process(10, 1000, None, "compute"),)


def test_one_in_two_lists_is_one_process_with_its_memory_once(library: Scripted, procfs: Path) -> None:
    library.process(10, 1000, "compute")
    library.process(10, 1000, "graphics")
    library.process(11, 300, "compute")
    library.process(11, 300, "mps")
    board = library.board()
    values = told(read(Processes(procfs), board))
    assert values["processes_memory_bytes",] == 1300
    assert (values["processes", "compute"], values["processes", "graphics"], values["processes", "mps"]) == (2, 1, 1)
    assert board.kept["processes"] == (Process(10, 1000, None, "compute"), Process(11, 300, None, "mps"))


def test_memory_that_is_not_told_of_one_is_not_told_of_all(library: Scripted, procfs: Path) -> None:
    library.process(10, 1000)
    library.process(12, NOT_TOLD, "graphics")
    board = library.board()
    values = told(read(Processes(procfs), board))
    assert ("processes_memory_bytes",) not in values
    assert board.kept["processes"][1] == Process(12, None, None, "graphics")


def test_nobody_there_is_a_reading(library: Scripted, procfs: Path) -> None:
    values = told(read(Processes(procfs), library.board()))
    assert values["processes", "compute"] == 0
    assert values["processes_memory_bytes",] == 0


def test_lists_that_cannot_be_read_are_unknown(library: Scripted, procfs: Path) -> None:
    library.process(10, 1000)
    board = library.board()
    read(Processes(procfs), board)
    for each in ("Compute", "Graphics", "MPSCompute"):
        library.answer(f"nvmlDeviceGet{each}RunningProcesses_v3", nv.NVML_ERROR_UNKNOWN)
    assert read(Processes(procfs), board) == []
    assert board.kept["processes"] == ()


def test_one_list_that_fails_leaves_the_others(library: Scripted, procfs: Path) -> None:
    library.process(10, 1000)
    library.answer("nvmlDeviceGetMPSComputeRunningProcesses_v3", nv.NVML_ERROR_NOT_SUPPORTED)
    values = told(read(Processes(procfs), library.board()))
    assert values["processes", "compute"] == 1
    assert ("processes", "mps") not in values


def test_an_older_driver_has_the_older_list(library: Scripted, procfs: Path) -> None:
    library.process(10, 1000)
    library.answer("nvmlDeviceGetComputeRunningProcesses_v3", nv.NVML_ERROR_FUNCTION_NOT_FOUND)
    assert library.board().ask(nv.nvmlDeviceGetComputeRunningProcesses_v3) is None
    assert library.calls("nvmlDeviceGetComputeRunningProcesses_v2") == 0
    read(Processes(procfs), library.board())
    assert library.calls("nvmlDeviceGetComputeRunningProcesses_v2") > 0


def test_under_mig_processes_belong_to_instances(library: Scripted, procfs: Path) -> None:
    library.process(10, 1000, instance=2)
    board, instance = library.board(mig=True), library.instance("2", 2)
    group = Processes(procfs)
    assert read(group, board) == []
    values = told(list(group.read_instance(board, instance)))
    assert values["processes", "compute"] == 1
    assert instance.kept["processes"] == (Process(10, 1000, "2", "compute"),)


def test_memory_of_each_on_request_of_the_largest(library: Scripted, procfs: Path) -> None:
    library.process(10, 1000)
    library.process(11, 3000)
    library.process(12, 2000, "graphics")
    values = told(read(Processes(procfs, most=2), library.board()))
    assert {key: number for key, number in values.items() if key[0] == "process_memory_bytes"} == {
        ("process_memory_bytes", "11", "mps", "compute"): 3000,
        ("process_memory_bytes", "12", "xorg", "graphics"): 2000,
    }
