"""No error code of any call becomes a value when a call begins to fail, whichever group asks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pynvml as nv
import pytest
from gpuwatch_exporters.nvml import gpm
from gpuwatch_exporters.nvml.calls import DRIVER_GONE, LOST, DeviceLostError, DriverGoneError
from gpuwatch_exporters.nvml.fields import EVERY_LINK
from gpuwatch_exporters.nvml.group import Board, Group
from gpuwatch_exporters.nvml.groups.c2c import C2c
from gpuwatch_exporters.nvml.groups.fabric import Fabric
from gpuwatch_exporters.nvml.groups.gpm import Gpm
from gpuwatch_exporters.nvml.groups.nvlink import NvLink
from gpuwatch_exporters.nvml.groups.nvlink_links import NvLinkFec, NvLinkLinks, NvLinkSwitches
from gpuwatch_exporters.nvml.groups.processes import Processes
from gpuwatch_exporters.nvml.groups.recovery import Recovery

from tests.exporters.nvml.scripted.library import U32, Scripted, read

SOURCE = "".join(each.read_text(encoding="utf-8") for each in sorted(Path(__file__).parent.glob("*.c")))
ASKED = sorted(set(re.findall(r"\b(nvml(?:Device|Gpm|EventSet)\w+)[,(]", SOURCE)) - {"nvmlGpmSampleFree"})
CODES = sorted({getattr(nv, name) for name in dir(nv) if name.startswith("NVML_ERROR_")} | {26, 30, 500, 999})
KINDS: tuple[type[Group], ...] = (
    C2c, Fabric, Gpm, NvLink, NvLinkFec, NvLinkLinks, NvLinkSwitches, Processes, Recovery,
)  # fmt: skip


@pytest.fixture(autouse=True)
def any_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpm, "SHORTEST_SECONDS", 0.0)


@pytest.fixture
def rich(library: Scripted) -> Scripted:
    """A GPU that has everything."""
    library.field(nv.NVML_FI_DEV_NVLINK_LINK_COUNT, 2, U32)
    for link in range(2):
        library.library.sc_link(0, link, 1, 2)
        library.field(nv.NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_0, 5, scope=link)
        library.field(nv.NVML_FI_DEV_C2C_LINK_GET_STATUS, 1, U32, scope=link)
    library.field(nv.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 5, scope=EVERY_LINK)
    library.field(nv.NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT, 2, U32)
    library.field(nv.NVML_FI_DEV_C2C_LINK_COUNT, 2, U32)
    library.field(nv.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, 0, U32)
    library.metric(nv.NVML_GPM_METRIC_SM_UTIL, 43.0)
    library.library.sc_fabric(3, 3, 0, 1, 0, 1)
    library.process(1, 1000)
    return library


def gone(group: Group, board: Board) -> Iterator[object]:
    """What is read, up to the point where the device or driver is given up."""
    try:
        yield from group.read(board)
    except (DeviceLostError, DriverGoneError):
        return


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_group_tells_something_of_a_gpu_that_has_everything(rich: Scripted, kind: type[Group]) -> None:
    group, board = kind(), rich.board()
    read(group, board)
    assert read(group, board)
    group.close(board)


@pytest.mark.parametrize("code", CODES)
def test_after_a_good_reading(rich: Scripted, code: int) -> None:
    for kind in KINDS:
        group, board = kind(), rich.board()
        read(group, board)
        read(group, board)
        for function in ASKED:
            rich.answer(function, code)
        board.cycle += 1
        left = {value.family.name for value in gone(group, board)}  # type: ignore[attr-defined]
        assert left <= {"gpuwatch_gpu_nvlink_links"}  # known from before
        rich.allow()
        group.close(board)


@pytest.mark.parametrize("code", sorted((*LOST, *DRIVER_GONE)))
def test_a_lost_device_or_driver_is_never_hidden(rich: Scripted, code: int) -> None:
    for function in ASKED:
        rich.answer(function, code)
    for kind in KINDS:
        with pytest.raises((DeviceLostError, DriverGoneError)):
            list(kind().read(rich.board()))
