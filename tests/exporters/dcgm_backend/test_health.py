"""DCGM's background checks: what it found, what passed, and what is not known."""

from __future__ import annotations

import pytest

from tests.exporters.dcgm_backend.conftest import Host, feature, value

GPU = 1
PCIE, MEM, NVSWITCH = 0x1, 0x10, 0x400
WARN, FAIL = 10, 20


def test_what_was_found_and_what_passed(host: Host) -> None:
    host.engine.incidents = [
        ((GPU, 0), MEM, WARN),
        ((GPU, 0), MEM, FAIL),
        ((GPU, 0), MEM, WARN),
        ((GPU, 1), PCIE, WARN),
    ]
    frame = host.cycle()
    assert value(frame, "dcgm_health", "mem") == FAIL
    assert value(frame, "dcgm_health", "pcie") == 0
    assert value(frame, "dcgm_health", "pcie", gpu=1) == WARN
    assert feature(frame, "health") == {("on", ""): 2}


def test_a_part_without_a_name_here_is_told_as_another(host: Host) -> None:
    host.engine.incidents = [((GPU, 0), NVSWITCH, FAIL)]
    assert value(host.cycle(), "dcgm_health", "other") == FAIL


@pytest.mark.parametrize("function", ["dcgmHealthSet_v2", "dcgmHealthCheck"])
def test_no_answer_is_no_pass(host: Host, function: str) -> None:
    host.engine.refused[function] = -33
    frame = host.cycle()
    assert value(frame, "dcgm_health", "mem") is None
    assert value(frame, "power_watts") == 612.44


def test_an_answer_is_not_repeated_when_there_is_none(host: Host) -> None:
    assert value(host.cycle(), "dcgm_health", "mem") == 0
    host.engine.refused["dcgmHealthCheck"] = -3
    assert value(host.cycle(), "dcgm_health", "mem") is None


def test_refused_checks_are_off_with_the_reason(host: Host) -> None:
    host.engine.refused["dcgmHealthSet_v2"] = -33
    assert feature(host.cycle(), "health") == {("off", "module_not_loaded"): 2}


def test_checks_can_be_left_out(host: Host) -> None:
    host.open(disabled=frozenset(("health",)))
    frame = host.cycle()
    assert value(frame, "dcgm_health", "mem") is None
    assert host.engine.calls["dcgmHealthSet_v2"] == 0
    assert feature(frame, "health") == {("off", "disabled"): 2}


def test_checks_go_on_after_a_new_connection_and_a_new_layout(host: Host) -> None:
    host.cycle()
    host.engine.die()
    host.cycle()
    host.engine.alive = True
    host.clock.forward(30)
    host.engine.gpus[1].instances.pop()
    host.engine.incidents = [((GPU, 1), PCIE, FAIL)]
    assert value(host.cycle(), "dcgm_health", "pcie", gpu=1) == FAIL
    host.engine.gpus[1].instances.clear()
    assert value(host.cycle(), "dcgm_health", "pcie", gpu=1) == FAIL
