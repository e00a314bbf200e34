"""Each function of the library fails in turn: nothing is lost but what it tells, and nothing is told instead."""

from __future__ import annotations

import pynvml as nv
from gpuwatch_exporters.nvml.calls import Calls
from gpuwatch_exporters.nvml.group import GROUPS, Board

from tests.exporters.nvml.groups.reading import Told, board, read
from tests.fake_nvml.harness import FakeNvml

# What the whole of NVML rests on: a device whose handle is refused has no groups to read.
_NOT_OF_GROUPS = {"nvmlInitWithFlags", "nvmlDeviceGetHandleByIndex_v2", "nvmlShutdown"}
_UNKNOWN = 999
_BUSY = ("0 util 50", "0 mem_util 20", "0 power_mw 300000")


def test_each_function_fails_alone(fake_nvml: FakeNvml) -> None:
    fake_nvml.write(*_BUSY)
    whole = everything()
    used = sorted({name for name in nv._nvmlGetFunctionPointer_cache if name not in _NOT_OF_GROUPS})
    assert len(used) > 40
    harmed = set()
    for name in used:
        fake_nvml.write(*_BUSY, f"err 0 {name} {_UNKNOWN}", f"err -1 {name} {_UNKNOWN}")
        rest = everything()
        assert all(key in whole or emptied(key, whole) for key in rest), name
        assert not {key for key in rest if steady(key) and rest[key] != whole.get(key, 1)}, name
        assert len(rest) > len(whole) / 2, name
        harmed |= whole.keys() - rest.keys()
    # All but those which two calls can tell are the word of one function; no value comes from nowhere.
    twice = {"temperature_celsius", "throttle_active", "energy_joules_total", "memory_total_bytes", "memory_free_bytes",
             "memory_used_bytes", "memory_model_info", "nvlink_links"}  # fmt: skip
    assert {key[0] for key in whole.keys() - harmed} <= twice


def test_a_failure_is_counted_by_function_and_error(fake_nvml: FakeNvml) -> None:
    fake_nvml.write(f"err 0 nvmlDeviceGetClockInfo {_UNKNOWN}")
    device = board()
    read("clocks", device)
    assert device.calls.failures == {("nvmlDeviceGetClockInfo", "unknown"): 4}


def everything() -> Told:
    """Two readings of each group, so that what counts between two is there; each with its own device."""
    found: Told = {}
    for name, group in GROUPS.items():
        device = board()
        read(name, device)
        found |= read(name, device)
        group.close(quiet(device))
    return found


def quiet(device: Board) -> Board:
    """The same without the errors that closing could meet."""
    device.calls = Calls("closing")
    return device


def emptied(key: tuple[str, ...], whole: Told) -> bool:
    """Whether it is a fact of the whole with a text less."""
    return key[0].endswith("_info") and any(
        len(key) == len(other) and all(mine in (text, "") for mine, text in zip(key, other, strict=True))
        for other in whole
    )


def steady(key: tuple[str, ...]) -> bool:
    """Whether the value stays while the state does."""
    return not key[0].endswith("_total")
