"""Fields that have another number in another driver: never read by a number that means something else there."""

from __future__ import annotations

import pytest
from gpuwatch_exporters.device.families import clocks, power
from gpuwatch_exporters.nvml.readings import Field
from gpuwatch_exporters.nvml.renumbered import SMOOTHING, THROTTLE_TIMES, for_driver

TABLE = (
    Field(74, clocks.THROTTLE_SECONDS, ("sw_power_cap",)),
    Field(SMOOTHING[0], power.SMOOTHING),
    Field(THROTTLE_TIMES[1], clocks.THROTTLE_SECONDS, ("hw_thermal_slowdown",)),
)


@pytest.mark.parametrize(
    ("driver", "numbers"),
    [
        ("615.71", {74, 251, 270}),
        ("580.95.05", {74, 251, 270}),
        ("580.82.07", {74, 251, 270}),
        ("580.76.05", {74}),  # between two headers
        ("580.65.06", {74, 252, 256}),
        ("575.57.08", {74, 252, 256}),
        ("570.172.08", {74, 251}),
        ("535.288.01", {74}),
        ("", {74}),
        ("unknown", {74}),
    ],
)
def test_a_driver_is_asked_by_its_own_numbers(driver: str, numbers: set[int]) -> None:
    found = for_driver(TABLE, driver)
    assert {each.id for each in found} == numbers
    smoothing = [each.id for each in found if each.family is power.SMOOTHING]
    assert smoothing in ([], [256] if 252 in numbers else [251])


def test_no_two_fields_get_one_number() -> None:
    every = tuple(Field(id_, power.SMOOTHING) for id_ in (*SMOOTHING, *THROTTLE_TIMES))
    for driver in ("570.86", "575.51", "580.65", "580.70", "580.82", "615.71"):
        ids = [each.id for each in for_driver(every, driver)]
        assert len(set(ids)) == len(ids)
