"""Drivers of other ages and devices of other kinds: what they have is told, the rest is absent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pynvml as nv
import pytest
from gpuwatch_exporters.nvml.calls import DriverGoneError
from gpuwatch_exporters.nvml.group import GROUPS

from tests.conftest import need_program
from tests.exporters.nvml.groups.reading import board, read
from tests.fake_nvml.harness import FakeNvml

NANO = 10**9


@pytest.fixture
def older(tmp_path: Path) -> Iterator[FakeNvml]:
    """A library in which the newer functions are not there at all."""
    need_program("gcc")
    fake = FakeNvml(tmp_path / "older", defines=("OLD_DRIVER",))
    fake.load()
    nv.nvmlInitWithFlags(0)
    try:
        yield fake
    finally:
        nv.nvmlShutdown()
        fake.unload()


def test_functions_that_are_not_there_are_known_as_such_and_harm_nobody(older: FakeNvml) -> None:
    older.write("driver 515.105.01", "0 temp 64", "0 throttle 0x4", "0 mem_used 100", f"proc 0 {os.getpid()} 30 -1")
    assert read("temperature")["temperature_celsius",] == 64
    assert read("throttle")["throttle_active", "sw_power_cap"] == 1
    memory = read("memory")
    assert ("memory_reserved_bytes",) not in memory
    assert memory["memory_used_bytes",] == 700 << 20  # such a driver counts what it reserves as used
    assert read("processes")["processes", "compute"] == 1
    device = board()
    assert read("gpm", device) == {}
    assert "driver_too_old" in device.calls.unsupported.values()
    told = {name for name in GROUPS.ids() if read(name)}
    assert told >= {"power", "energy", "clocks", "ecc", "pcie", "board", "utilization"}


def test_unified_memory_answers_not_supported(fake_nvml: FakeNvml) -> None:
    fake_nvml.write("0 unified 1")
    assert read("memory", board(model="NVIDIA GB10")) == {("memory_model_info", "unified"): 1}
    assert read("power")["power_watts",] > 0


@pytest.mark.parametrize(("driver", "field"), [("580.95.05", 270), ("580.65.06", 252), ("575.57.08", 252)])
def test_throttled_time_is_asked_by_the_drivers_number(fake_nvml: FakeNvml, driver: str, field: int) -> None:
    fake_nvml.write(
        f"driver {driver}", *(f"field 0 {number} * error 3" for number in range(251, 274)),
        f"field 0 {field} * ulonglong {7 * NANO}", f"field 0 74 * ulonglong {NANO // 2}",
    )  # fmt: skip
    values = read("throttle", board(driver=driver))
    assert values["throttle_seconds_total", "hw_thermal_slowdown"] == 7
    assert values["throttle_seconds_total", "sw_power_cap"] == 0.5
    assert ("throttle_seconds_total", "sw_thermal_slowdown") not in values
    assert read("power_smoothing", board(driver=driver)) == {}  # the time is not taken for a setting of power


def test_a_field_of_each_type_and_its_mark_for_no_value(fake_nvml: FakeNvml) -> None:
    fake_nvml.write("field 0 193 * int -8", "field 0 82 * uint 4294967295", "field 0 197 * ulonglong 5000000000")
    assert read("temperature_limits")["temperature_limit_margin_celsius", "shutdown"] == -8
    device = board()
    assert ("memory_temperature_celsius",) not in read("temperature", device)
    assert device.calls.failures["nvmlDeviceGetFieldValues", "no_value"] == 1
    assert read("pcie")["pcie_received_bytes_total",] + read("pcie")["pcie_transmitted_bytes_total",] >= 5_000_000_000


def test_memory_of_a_process_that_the_driver_does_not_tell_is_no_number(fake_nvml: FakeNvml) -> None:
    fake_nvml.write("0 procs 0", f"proc 0 {os.getpid()} -1 -1 graphics", f"proc 0 {os.getppid()} 30 -1")
    values = read("processes")
    assert values["processes", "graphics"] == 1
    assert ("processes_memory_bytes",) not in values


def test_a_handle_dies_with_the_driver_and_with_the_opening(fake_nvml: FakeNvml) -> None:
    device = board()
    fake_nvml.write("driver_gone 1")
    with pytest.raises(DriverGoneError):
        read("power", device)
    with pytest.raises(nv.NVMLError_DriverNotLoaded):
        nv.nvmlInitWithFlags(0)
    fake_nvml.write()
    with pytest.raises(DriverGoneError):
        read("power", device)  # not opened anew
    nv.nvmlInitWithFlags(0)
    with pytest.raises(DriverGoneError):
        read("power", device)  # its handle is of the opening before
    assert read("power", board())["power_watts",] > 0


def test_a_handle_of_an_older_mig_layout_is_refused(fake_nvml: FakeNvml) -> None:
    fake_nvml.write("mig 0 1 9856", "mig 1 1 9856")
    first = [nv.nvmlDeviceGetMigDeviceHandleByIndex(nv.nvmlDeviceGetHandleByIndex(gpu), 0) for gpu in range(2)]
    fake_nvml.write("mig 0 2 20096", "mig 1 1 9856")
    with pytest.raises(nv.NVMLError_InvalidArgument):
        nv.nvmlDeviceGetUUID(first[0])
    assert nv.nvmlDeviceGetUUID(first[1]).startswith("MIG-")  # the other GPU's layout is the same
