"""Fabric, recovery action, C2C."""

from __future__ import annotations

import pynvml as nv
import pytest
from gpuwatch_exporters.nvml.groups.c2c import C2c
from gpuwatch_exporters.nvml.groups.fabric import Fabric, faults
from gpuwatch_exporters.nvml.groups.recovery import ACTIONS, Recovery

from tests.exporters.nvml.scripted.library import U32, Scripted, read, told

COMPLETED, HEALTHY = nv.NVML_GPU_FABRIC_STATE_COMPLETED, nv.NVML_GPU_FABRIC_HEALTH_SUMMARY_HEALTHY
CLUSTER = "30313233-3435-3637-3839-616263646500"


def test_a_gpu_that_has_joined(library: Scripted) -> None:
    library.library.sc_fabric(3, COMPLETED, nv.NVML_SUCCESS, 7, 0, HEALTHY)
    assert told(read(Fabric(), library.board())) == {
        ("fabric_state",): 3,
        ("fabric_joined",): 1,
        ("fabric_info", CLUSTER, "7", "completed", "success"): 1,
        ("fabric_healthy",): 1,
        ("fabric_health_info", "healthy"): 1,
    }


def test_a_gpu_that_could_not_join(library: Scripted) -> None:
    library.library.sc_fabric(3, COMPLETED, nv.NVML_ERROR_NOT_FOUND, 0, 0, nv.NVML_GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY)
    values = told(read(Fabric(), library.board()))
    assert values["fabric_joined",] == 0
    assert values["fabric_info", CLUSTER, "0", "completed", "not_found"] == 1
    assert values["fabric_healthy",] == 0


def test_before_it_has_joined_cluster_and_clique_mean_nothing(library: Scripted) -> None:
    library.library.sc_fabric(3, nv.NVML_GPU_FABRIC_STATE_IN_PROGRESS, 0, 9, 0, 0)
    assert told(read(Fabric(), library.board())) == {
        ("fabric_state",): 2,
        ("fabric_joined",): 0,
        ("fabric_info", "", "", "in_progress", ""): 1,
    }


def test_without_a_fabric_nothing_is_told(library: Scripted) -> None:
    library.library.sc_fabric(3, nv.NVML_GPU_FABRIC_STATE_NOT_SUPPORTED, 0, 0, 0, 0)
    board = library.board()
    assert read(Fabric(), board) == []
    assert board.why == "no_fabric"
    library.library.sc_fabric(3, 77, 0, 0, 0, 0)  # a state of a newer driver
    board = library.board()
    assert read(Fabric(), board) == []
    assert board.why == ""


def test_an_older_driver_knows_the_older_form(library: Scripted) -> None:
    library.library.sc_fabric(2, COMPLETED, nv.NVML_SUCCESS, 7, 0, HEALTHY)
    board = library.board()
    for _ in range(3):
        values = told(read(Fabric(), board))
    assert values["fabric_joined",] == 1
    assert ("fabric_healthy",) not in values  # the older form has no summary
    assert library.calls("nvmlDeviceGetGpuFabricInfoV") == 4  # the newer one was tried once


def test_a_driver_without_the_call_is_asked_once(library: Scripted) -> None:
    library.answer("nvmlDeviceGetGpuFabricInfoV", nv.NVML_ERROR_NOT_SUPPORTED)
    board = library.board()
    for _ in range(3):
        assert read(Fabric(), board) == []
    assert library.calls("nvmlDeviceGetGpuFabricInfoV") == 1


def test_the_health_mask_part_by_part() -> None:
    mask = 1 << 0 | 2 << 2 | 1 << 4 | 5 << 8 | 1 << 12 | 2 << 14
    assert told(list(faults(mask))) == {
        ("fabric_fault", "degraded_bandwidth"): 1,
        ("fabric_fault", "route_recovery"): 0,
        ("fabric_fault", "route_unhealthy"): 1,
        ("fabric_fault", "no_partition_assigned"): 0,
        ("fabric_fault", "manager_disconnected"): 1,
        ("fabric_fault", "incorrect_configuration"): 1,
        ("fabric_configuration_fault_info", "insufficient_nvlinks"): 1,
    }
    assert told(list(faults(1 << 8))) == {("fabric_fault", "incorrect_configuration"): 0}
    assert list(faults(0)) == []
    assert ("fabric_configuration_fault_info", "reason_13") in told(list(faults(13 << 8)))


@pytest.mark.parametrize(
    ("action", "name", "reset", "drain"),
    [(0, "none", 0, 0), (1, "gpu_reset", 1, 0), (2, "node_reboot", 1, 0), (3, "drain_p2p", 0, 1),
     (4, "drain_and_reset", 1, 1), (5, "recover_imex_domain", 0, 0), (6, "bus_reset", 1, 0), (42, "action_42", 1, 0)],
)  # fmt: skip
def test_what_the_driver_asks_for(library: Scripted, action: int, name: str, reset: int, drain: int) -> None:
    library.field(nv.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, action, U32)
    assert told(read(Recovery(), library.board())) == {
        ("recovery_action",): action,
        ("recovery_action_info", name): 1,
        ("reset_needed",): reset,
        ("drain_needed",): drain,
    }


def test_an_older_driver_tells_reset_and_drain(library: Scripted) -> None:
    library.field(nv.NVML_FI_DEV_RESET_STATUS, 0, U32)
    library.field(nv.NVML_FI_DEV_DRAIN_AND_RESET_STATUS, 1, U32)
    assert told(read(Recovery(), library.board())) == {("reset_needed",): 1, ("drain_needed",): 1}


def test_a_driver_that_tells_nothing(library: Scripted) -> None:
    assert read(Recovery(), library.board()) == []
    assert ACTIONS[0] == "none"


def test_c2c_links(library: Scripted) -> None:
    library.field(nv.NVML_FI_DEV_C2C_LINK_COUNT, 2, U32)
    for link in range(2):
        library.field(nv.NVML_FI_DEV_C2C_LINK_GET_STATUS, 1 - link, U32, scope=link)
        library.field(nv.NVML_FI_DEV_C2C_LINK_GET_MAX_BW, 45_000, U32, scope=link)
    library.field(nv.NVML_FI_DEV_C2C_LINK_ERROR_REPLAY_B2B, 6, scope=1)
    assert told(read(C2c(), library.board())) == {
        ("c2c_links",): 2,
        ("c2c_link_up", "0"): 1,
        ("c2c_link_up", "1"): 0,
        ("c2c_link_speed_bytes_per_second", "0"): 45_000_000_000,
        ("c2c_link_speed_bytes_per_second", "1"): 45_000_000_000,
        ("c2c_link_errors_total", "1", "replay_back_to_back"): 6,
    }


def test_no_c2c(library: Scripted) -> None:
    library.field(nv.NVML_FI_DEV_C2C_LINK_COUNT, 0, U32)
    assert read(C2c(), library.board()) == []
