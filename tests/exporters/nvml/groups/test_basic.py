"""The groups that every board has: what the state says is what they tell, in base units."""

from __future__ import annotations

import pytest
from gpuwatch_exporters.nvml.group import GROUPS

from tests.exporters.nvml.groups.reading import board, read
from tests.fake_nvml.harness import FakeNvml

MIB, GIB = 1 << 20, 1 << 30


def test_memory_is_told_whole_and_its_parts_make_the_total(fake_nvml: FakeNvml) -> None:
    fake_nvml.write("0 mem_total 81559", "0 mem_used 1234")
    values = read("memory")
    assert values["memory_total_bytes",] == 81559 * MIB
    assert values["memory_used_bytes",] == 1234 * MIB
    parts = ("memory_used_bytes", "memory_free_bytes", "memory_reserved_bytes")
    assert sum(values[name,] for name in parts) == 81559 * MIB
    assert values["memory_model_info", "dedicated"] == 1
    assert values["bar1_used_bytes",] + values["bar1_free_bytes",] == values["bar1_total_bytes",]


def test_a_driver_without_the_newer_memory_call_tells_no_reserved_amount(fake_nvml: FakeNvml) -> None:
    fake_nvml.write("0 mem_total 81559", "0 mem_used 1234", "err 0 nvmlDeviceGetMemoryInfo_v2 13")
    values = read("memory")
    assert values["memory_total_bytes",] == 81559 * MIB
    assert ("memory_reserved_bytes",) not in values


def test_unified_memory_has_a_reason_and_no_amounts(fake_nvml: FakeNvml) -> None:
    fake_nvml.write("err 0 nvmlDeviceGetMemoryInfo 3", "err 0 nvmlDeviceGetMemoryInfo_v2 3")
    assert read("memory", board(model="NVIDIA GB10")) == {("memory_model_info", "unified"): 1}
    assert ("memory_model_info", "unified") not in read("memory", board(model="NVIDIA GB100"))
    other = read("memory", board(model="NVIDIA H100 80GB HBM3"))
    assert not any(name.startswith("memory_") for name, *_ in other)  # why it is missing is not known: nothing is told


def test_power_and_limits_are_in_watts(fake_nvml: FakeNvml) -> None:
    fake_nvml.write("0 power_mw 431200", "0 limit_mw 650000")
    values = read("power")
    assert values["power_watts",] == 431.2
    assert values["power_limit_watts",] == 650
    assert values["power_instant_watts", "gpu"] == 431.2
    assert read("power_limits")["power_default_limit_watts",] == 700


def test_one_failing_call_takes_nothing_else_with_it(fake_nvml: FakeNvml) -> None:
    before = read("power")
    fake_nvml.write("err 0 nvmlDeviceGetPowerUsage 999")
    device = board()
    after = read("power", device)
    assert before.keys() - after.keys() == {("power_watts",)}
    assert device.calls.failures["nvmlDeviceGetPowerUsage", "unknown"] == 1
    fake_nvml.write()
    assert ("power_watts",) in read("power", device)  # a failure is no verdict for ever


def test_what_is_not_supported_is_asked_once(fake_nvml: FakeNvml) -> None:
    fake_nvml.write("err 0 nvmlDeviceGetPowerUsage 3")
    device = board()
    assert ("power_watts",) not in read("power", device)
    fake_nvml.write()
    assert ("power_watts",) not in read("power", device)
    assert "not_supported" in device.calls.unsupported.values()
    assert ("power_watts",) in read("power", board())


def test_a_mark_for_no_value_is_no_value(fake_nvml: FakeNvml) -> None:
    fake_nvml.write("0 power_mw 4294967295", "0 limit_mw 650000")
    device = board()
    values = read("power", device)
    assert ("power_watts",) not in values
    assert values["power_limit_watts",] == 650
    assert device.calls.failures["nvmlDeviceGetPowerUsage", "no_value"] == 1


def test_energy_counts_on_in_joules(fake_nvml: FakeNvml) -> None:
    first = read("energy")["energy_joules_total",]
    assert 1e6 <= first < 1e9
    assert read("energy")["energy_joules_total",] >= first


def test_heat_of_gpu_and_memory(fake_nvml: FakeNvml) -> None:
    fake_nvml.write("0 temp 64", "0 mem_temp 81")
    values = read("temperature")
    assert values["temperature_celsius",] == 64
    assert values["memory_temperature_celsius",] == 81
    fake_nvml.write("0 temp 64", "0 mem_temp 0")
    assert ("memory_temperature_celsius",) not in read("temperature")  # no sensor


def test_an_older_driver_is_asked_in_its_own_way(fake_nvml: FakeNvml) -> None:
    missing = ("nvmlDeviceGetTemperatureV", "nvmlDeviceGetCurrentClocksEventReasons")
    fake_nvml.write("0 temp 64", "0 throttle 0x4", *(f"err 0 {name} 13" for name in missing))
    assert read("temperature")["temperature_celsius",] == 64
    assert read("throttle")["throttle_active", "sw_power_cap"] == 1


def test_limits_of_heat_by_kind(fake_nvml: FakeNvml) -> None:
    values = read("temperature_limits")
    assert values["temperature_limit_celsius", "shutdown"] > values["temperature_limit_celsius", "slowdown"] > 50
    assert ("temperature_limit_celsius", "target") not in values  # the library tells 0 or nothing: not set


def test_clocks_are_in_hertz(fake_nvml: FakeNvml) -> None:
    fake_nvml.write("0 sm_mhz 1755")
    assert read("clocks")["clock_hertz", "sm"] == 1_755_000_000
    assert read("clock_settings")["clock_max_hertz", "sm"] == 1_980_000_000


@pytest.mark.parametrize(
    ("mask", "active"),
    [
        (0x0, set()),
        (0x1, {"gpu_idle"}),
        (0x44, {"sw_power_cap", "hw_thermal_slowdown"}),
        (0x8, {"hw_slowdown"}),
        (0x600, {"board_limit", "reliability"}),
        (0x8000, {"bit_15"}),
    ],
)
def test_every_bit_of_the_throttle_reasons_is_told(fake_nvml: FakeNvml, mask: int, active: set[str]) -> None:
    fake_nvml.write(f"0 throttle {mask:#x}")
    values = {labels[0]: v for (name, *labels), v in read("throttle").items() if name == "throttle_active"}
    assert {reason for reason, on in values.items() if on} == active
    assert len(values) >= 9  # those that the board can have are told as 0


def test_errors_of_memory_and_rows(fake_nvml: FakeNvml) -> None:
    fake_nvml.write("0 ecc_corr 7", "0 ecc_uncorr 2", "0 remap_corr 1", "0 remap_uncorr 3", "0 remap_failed 1",
                    "0 remap_pending 1")  # fmt: skip
    values = read("ecc")
    assert values["ecc_errors_total", "corrected", "volatile"] == 7
    assert values["ecc_errors_total", "uncorrected", "aggregate"] == 2
    assert values["ecc_enabled",] == 1
    assert read("ecc_locations")["ecc_location_errors_total", "uncorrected", "volatile", "device_memory"] == 2
    assert read("remapped_rows") == {
        ("remapped_rows", "correctable"): 1,
        ("remapped_rows", "uncorrectable"): 3,
        ("row_remap_pending",): 1,
        ("row_remap_failed",): 1,
    }


def test_the_link_to_the_host(fake_nvml: FakeNvml) -> None:
    fake_nvml.write("0 pcie_gen 1", "0 pcie_width 8")
    values = read("pcie")
    assert (values["pcie_link_generation",], values["pcie_link_width",]) == (1, 8)
    assert values["pcie_replays_total",] == 0
    assert read("pcie_limits")["pcie_link_width_max",] == 16


def test_in_mig_mode_the_board_has_no_utilization(fake_nvml: FakeNvml) -> None:
    fake_nvml.write("0 util 0", "0 mig_mode 1")
    for group in ("utilization", "media"):
        assert read(group, board(mig_enabled=True)) == {}, group


def test_facts_of_the_board(fake_nvml: FakeNvml) -> None:
    values = read("board")
    [(_, architecture, capability, *_)] = [key for key in values if key[0] == "board_info"]
    assert (architecture, capability) == ("hopper", "9.0")
    assert values["cores",] == 16896
    assert values["memory_bus_width_bytes",] == 640


def test_every_group_can_be_read_twice(fake_nvml: FakeNvml) -> None:
    for name, group in GROUPS.items():
        device = board()
        first, second = read(name, device), read(name, device)
        # What counts between two cycles is there from the second on.
        assert first.keys() <= second.keys() or name == "gpm", name
        group.close(device)


def test_where_a_board_sits_in_a_rack_is_told_in_numbers(fake_nvml: FakeNvml) -> None:
    fake_nvml.write("model NVIDIA GB200")
    values = read("board", board(1))
    assert values["platform_info", "1820224110129", "3", "2", "1", "2"] == 1
    assert all(text.isprintable() for key in values for text in key)


def test_more_than_all_of_the_time_is_no_share_of_it(fake_nvml: FakeNvml) -> None:
    fake_nvml.write("0 util 101", "0 mem_util 40", "answer 0 nvmlDeviceGetEncoderUtilization 4294967295 167000")
    device = board()
    assert read("utilization", device) == {("memory_controller_utilization_ratio",): 0.4}
    assert ("encoder_utilization_ratio",) not in read("media", device)
    assert device.calls.failures["nvmlDeviceGetUtilizationRates", "no_value"] == 1
