"""The stand-in itself, where tests lean on what it says: MIG places, counters, answers, calls that are counted."""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path
from typing import Any

import pynvml as nv
import pytest

from tests.fake_nvml.harness import FakeNvml


def places(gpu: Any, profile: int) -> list[tuple[int, int]]:
    """(start, size) at which the profile may lie."""
    found, count = (nv.c_nvmlGpuInstancePlacement_t * 8)(), ctypes.c_uint(8)
    nv.nvmlDeviceGetGpuInstancePossiblePlacements(gpu, profile, found, ctypes.byref(count))
    return [(each.start, each.size) for each in found[: count.value]]


def free(gpu: Any) -> dict[str, int]:
    """Profile -> how many more fit."""
    out = {}
    for kind in range(nv.NVML_GPU_INSTANCE_PROFILE_COUNT):
        try:
            info = nv.nvmlDeviceGetGpuInstanceProfileInfo(gpu, kind)
        except nv.NVMLError_NotSupported:
            continue
        out[str(info.name).removeprefix("MIG ")] = nv.nvmlDeviceGetGpuInstanceRemainingCapacity(gpu, info.id)
    return out


def test_instances_lie_where_their_profiles_allow_and_none_on_another(fake_nvml: FakeNvml) -> None:
    fake_nvml.write("mig 0 1g.10gb", "mig 0 2g.20gb", "mig 0 4g.40gb")
    gpu = nv.nvmlDeviceGetHandleByIndex(0)
    taken: list[int] = []
    for id_ in (1, 2, 3):
        info = nv.nvmlGpuInstanceGetInfo(nv.nvmlDeviceGetGpuInstanceById(gpu, id_))
        assert (info.placement.start, info.placement.size) in places(gpu, info.profileId)
        taken += range(info.placement.start, info.placement.start + info.placement.size)
    assert sorted(taken) == list(range(7))
    assert set(free(gpu).values()) == {0}


@pytest.mark.parametrize(
    ("model", "names"),
    [("NVIDIA H100 80GB HBM3", {"1g.10gb": 7, "1g.10gb+me": 1, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2,
                                "4g.40gb": 1, "7g.80gb": 1}),
     ("NVIDIA H200", {"1g.18gb": 7, "1g.18gb+me": 1, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2,
                      "4g.71gb": 1, "7g.141gb": 1})],
)  # fmt: skip
def test_profiles_of_an_empty_board(fake_nvml: FakeNvml, model: str, names: dict[str, int]) -> None:
    fake_nvml.write("0 mig_mode 1", model=model)
    assert free(nv.nvmlDeviceGetHandleByIndex(0)) == names
    smallest = next(iter(names))
    fake_nvml.write(f"model {model}", f"mig 0 {smallest}")
    assert free(nv.nvmlDeviceGetHandleByIndex(0))[smallest] == 6


def test_one_small_instance_at_the_edge_leaves_no_room_for_the_whole(fake_nvml: FakeNvml) -> None:
    fake_nvml.write("mig 0 1g.10gb+me")
    left = free(nv.nvmlDeviceGetHandleByIndex(0))
    assert (left["7g.80gb"], left["4g.40gb"], left["1g.10gb"], left["1g.10gb+me"]) == (0, 1, 6, 0)


def test_sixteen_boards_with_seven_instances_each(fake_nvml: FakeNvml) -> None:
    fake_nvml.write("gpus 16", *(f"mig {gpu} 1g.10gb" for gpu in range(16) for _ in range(7)))
    uuids = {
        nv.nvmlDeviceGetUUID(nv.nvmlDeviceGetMigDeviceHandleByIndex(nv.nvmlDeviceGetHandleByIndex(gpu), index))
        for gpu in range(16)
        for index in range(7)
    }
    assert len(uuids) == 16 * 7


def test_counters_depend_on_the_clock_that_stands_alone(fake_nvml: FakeNvml) -> None:
    gpu = nv.nvmlDeviceGetHandleByIndex(0)
    for seconds in (0, 10):
        fake_nvml.write("0 power_mw 500000", "0 energy_mj 1000", f"clock {seconds}")
        assert nv.nvmlDeviceGetTotalEnergyConsumption(gpu) == 1000 + seconds * 500_000


def test_numbers_of_an_answer_can_be_said(fake_nvml: FakeNvml) -> None:
    fake_nvml.write("answer 0 nvmlDeviceGetEncoderUtilization 35 90", "answer -1 nvmlDeviceGetComputeMode 3")
    first, second = (nv.nvmlDeviceGetHandleByIndex(index) for index in range(2))
    assert nv.nvmlDeviceGetEncoderUtilization(first) == [35, 90]
    assert nv.nvmlDeviceGetEncoderUtilization(second) == [0, 167000]
    assert nv.nvmlDeviceGetComputeMode(second) == 3


def test_a_call_that_hangs_goes_on_when_the_state_says_so_and_holds_up_no_other(fake_nvml: FakeNvml) -> None:
    hung, other = (nv.nvmlDeviceGetHandleByIndex(index) for index in range(2))
    fake_nvml.write("hang 0 nvmlDeviceGetPowerUsage")
    asking = threading.Thread(target=nv.nvmlDeviceGetPowerUsage, args=(hung,), daemon=True)
    asking.start()
    asking.join(0.1)
    assert nv.nvmlDeviceGetPowerUsage(other) > 0
    assert asking.is_alive()
    fake_nvml.write()
    asking.join(10)
    assert not asking.is_alive()


def test_calls_are_counted_by_device(fake_nvml: FakeNvml) -> None:
    gpu = nv.nvmlDeviceGetHandleByIndex(2)
    before = [nv.nvmlLib.fakeNvmlDeviceCalls(index) for index in (2, 3)]
    nv.nvmlDeviceGetPowerUsage(gpu)
    assert [nv.nvmlLib.fakeNvmlDeviceCalls(index) for index in (2, 3)] == [before[0] + 1, before[1]]


@pytest.mark.parametrize("flags", [0, nv.NVML_INIT_FLAG_NO_ATTACH])
def test_device_files_are_held_open_while_the_library_is(
    fake_nvml: FakeNvml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: int
) -> None:
    for name in ("nvidiactl", "nvidia0", "nvidia1"):
        (tmp_path / name).touch()
    monkeypatch.setenv("FAKE_NVML_DEV", str(tmp_path))
    fake_nvml.write("gpus 2")
    nv.nvmlShutdown()
    nv.nvmlInitWithFlags(flags)
    expected = {"nvidiactl"} if flags else {"nvidiactl", "nvidia0", "nvidia1"}
    assert open_in(tmp_path) == expected
    nv.nvmlDeviceGetHandleByIndex(1)
    assert open_in(tmp_path) == expected | {"nvidia1"}
    nv.nvmlShutdown()
    assert open_in(tmp_path) == set()
    nv.nvmlInitWithFlags(0)


def open_in(folder: Path) -> set[str]:
    """Names of this folder's files that this process holds open."""
    links = (Path(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd"))
    held = {link.readlink() for link in links if link.is_symlink()}
    return {path.name for path in held if path.parent == folder}
