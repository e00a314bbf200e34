"""Frames that the tests of compatibility names print."""

from __future__ import annotations

from collections.abc import Mapping

from gpuwatch_exporters.device.family import FAMILIES
from gpuwatch_exporters.device.frame import DeviceFrame, Frame, Identity, InstanceFrame, Value, Workload

MIB = 1 << 20
FIRST = Identity(
    0, "GPU-11111111-2222-3333-4444-555555555555", "0000:17:00.0", "NVIDIA H100 80GB HBM3", "165", 0, "570.1"
)
SECOND = Identity(
    1, "GPU-66666666-7777-8888-9999-000000000000", "0000:3d:00.0", "NVIDIA H100 80GB HBM3", "166", 1, "570.1"
)

BOARD = {
    "power_watts": 612.44,
    "power_limit_watts": 700.0,
    "energy_joules_total": 83412345.678,
    "temperature_celsius": 61.0,
    "temperature_limit_celsius{slowdown}": 87.0,
    "memory_temperature_celsius": 70.0,
    "clock_hertz{sm}": 1980e6,
    "clock_hertz{memory}": 2619e6,
    "row_remap_failed": 0.0,
    "row_remap_pending": 0.0,
    "remapped_rows{uncorrectable}": 1.0,
    "remapped_rows{correctable}": 2.0,
    "ecc_errors_total{corrected,volatile}": 3.0,
    "ecc_errors_total{uncorrected,volatile}": 0.0,
    "pcie_replays_total": 4.0,
    "throttle_active{sw_power_cap}": 1.0,
    "throttle_active{hw_slowdown}": 1.0,
    "throttle_active{gpu_idle}": 0.0,
    "throttle_seconds_total{sw_power_cap}": 2.5,
    "encoder_utilization_ratio": 0.0,
    "decoder_utilization_ratio": 0.25,
    "nvlink_transmit_bytes_per_second": 60e9,
    "nvlink_receive_bytes_per_second": 30e9,
    "pcie_transmit_bytes_per_second": 2.1e9,
    "pcie_receive_bytes_per_second": 3.4e9,
}
MEMORY = {
    "memory_total_bytes": 81559.0 * MIB,
    "memory_used_bytes": 61234.0 * MIB,
    "memory_free_bytes": 19800.0 * MIB,
    "memory_reserved_bytes": 525.0 * MIB,
}
ACTIVITY = {
    "graphics_active_ratio": 0.412345,
    "sm_active_ratio": 0.4,
    "sm_occupancy_ratio": 0.2,
    "tensor_active_ratio": 0.1,
    "dram_active_ratio": 0.05,
}
WHOLE = {"utilization_ratio": 0.87, "memory_controller_utilization_ratio": 0.31, **BOARD, **MEMORY, **ACTIVITY}


def values(table: Mapping[str, float]) -> tuple[Value, ...]:
    """Values by "family{label,label}", without the prefix that all names share."""
    out = []
    for key, number in table.items():
        name, _, rest = key.partition("{")
        labels = tuple(rest.removesuffix("}").split(",")) if rest else ()
        out.append(Value(FAMILIES.get(f"gpuwatch_gpu_{name}"), labels, number))
    return tuple(out)


def whole(who: Identity = FIRST, **changes: float) -> DeviceFrame:
    """A device in full use; changes: family -> number."""
    return DeviceFrame(who, up=True, values=values({**WHOLE, **changes}))


def cut(who: Identity = SECOND) -> DeviceFrame:
    """A device in two MIG instances."""
    parts = (
        InstanceFrame("1", "MIG-a", "3g.40gb", 0, 4, values({**MEMORY, **ACTIVITY, "graphics_active_ratio": 0.5})),
        InstanceFrame("5", "MIG-b", "1g.10gb", 4, 1, values({**MEMORY, **ACTIVITY, "graphics_active_ratio": 0.125})),
    )
    return DeviceFrame(who, up=True, values=values({**BOARD, **MEMORY}), instances=parts)


def pod(name: str, uuid: str = FIRST.uuid, instance: str | None = None, container: str = "main") -> Workload:
    return Workload(uuid, instance, namespace="ml", pod=name, container=container, source="podresources")


def frame(*devices: DeviceFrame, workloads: tuple[Workload, ...] = ()) -> Frame:
    return Frame("node-a", devices or (whole(), cut()), workloads=workloads)
