"""Whatever the library answers instead of a value, no group makes a value of it."""

from __future__ import annotations

import pynvml as nv
import pytest
from gpuwatch_exporters.nvml.calls import DRIVER_GONE, LOST, Calls, DeviceLostError, DriverGoneError
from gpuwatch_exporters.nvml.group import GROUPS

from tests.exporters.nvml.groups.reading import board, read
from tests.fake_nvml.harness import FakeNvml

CODES = sorted({getattr(nv, name) for name in dir(nv) if name.startswith("NVML_ERROR_")} | {77})


@pytest.mark.parametrize("code", CODES)
def test_no_error_code_becomes_a_value(fake_nvml: FakeNvml, code: int) -> None:
    devices = {name: board() for name in GROUPS.ids()}
    fake_nvml.write("model NVIDIA GB200", f"err 0 * {code}")  # a board that has everything
    asked = 0
    for name, device in devices.items():
        try:
            assert read(name, device) == {}, name
        except DeviceLostError:
            assert code in LOST
        except DriverGoneError:
            assert code in DRIVER_GONE
        asked += bool(device.calls.unsupported or device.calls.failures)
    if code not in LOST | DRIVER_GONE:
        assert asked > len(devices) / 2  # they did ask


def test_lost_and_gone_are_told_apart_from_failures(fake_nvml: FakeNvml) -> None:
    device = board()
    fake_nvml.write("err 0 nvmlDeviceGetPowerUsage 15")
    with pytest.raises(DeviceLostError):
        read("power", device)
    fake_nvml.write("err 0 nvmlDeviceGetPowerUsage 1")
    with pytest.raises(DriverGoneError):
        read("power", device)


def test_bytes_that_are_no_text_are_a_failure_of_their_call_alone() -> None:
    calls = Calls("GPU 0")
    assert calls.ask(lambda handle: b"\xff\xff".decode(), None) is None
    assert calls.failures == {("<lambda>", "not_text"): 1}


def test_each_fault_is_logged_once(fake_nvml: FakeNvml, caplog: pytest.LogCaptureFixture) -> None:
    fake_nvml.write("err 0 nvmlDeviceGetPowerUsage 999")
    device = board()
    for _ in range(5):
        read("power", device)
    assert caplog.text.count("nvmlDeviceGetPowerUsage gives no value") == 1
    assert device.calls.failures["nvmlDeviceGetPowerUsage", "unknown"] == 5
