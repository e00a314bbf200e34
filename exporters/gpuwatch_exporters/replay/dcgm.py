"""One node's page in the words of dcgm-exporter: names up to 4.8 and since 4.9, MIG, several pods a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal

from gpuwatch.model.catalogue import card
from gpuwatch.model.cluster import Gpu, MigInstance, Node, Telemetry
from gpuwatch.model.units import MIB
from gpuwatch_exporters.exposition import family, labels, number
from gpuwatch_exporters.replay.holders import CONTAINER, Pod

Names = Literal["old", "new"]
DRIVER_VERSION = {"old": "570.86.15", "new": "580.95.05"}
_DRIVER_LABEL = {"old": "DCGM_FI_DRIVER_VERSION", "new": "DCGM_FI_SYSTEM_DRIVER_VERSION"}
NOT_MEASURED = "[replayed or generated, not measured]"
_XID_TEXTS = {31: "GPU memory page fault", 48: "Double Bit ECC Error", 79: "GPU has fallen off the bus"}
_SM_CLOCK_MHZ = (345, 1980)


@dataclass(frozen=True, slots=True)
class Reading:
    """What one series set is printed from: a device, or one instance of it (then `board` is the device's)."""

    gpu: Gpu
    telemetry: Telemetry
    board: Telemetry
    energy_joules: float | None
    instance: MigInstance | None = None

    @property
    def engine(self) -> float | None:
        return self.telemetry.engine_active_ratio


def _times(amount: float | None, factor: float) -> float | None:
    return None if amount is None else amount * factor


def _mib(amount: int | None) -> float | None:
    return None if amount is None else round(amount / MIB)


def _free_bytes(r: Reading) -> int | None:
    total, used = r.telemetry.memory_total_bytes, r.telemetry.memory_used_bytes
    return None if total is None or used is None else max(0, total - used)


def _utilization(r: Reading) -> float | None:
    return None if r.instance else r.telemetry.utilization_ratio  # absent on instances, as the real one leaves it out


def _nvlink(r: Reading) -> float | None:
    profile = card(r.gpu.model)
    if profile is None or profile.nvlink_bytes_per_second is None or r.instance:
        return None
    return _times(r.engine, 0.18 * profile.nvlink_bytes_per_second)


def _clock(r: Reading) -> float | None:
    low, high = _SM_CLOCK_MHZ
    return None if r.board.power_watts is None else round(low + (high - low) * min(1.0, 3 * (r.engine or 0.0)))


def _memory_heat(r: Reading) -> float | None:
    profile = card(r.gpu.model)
    stacked = profile is not None and profile.nvlink_version is not None  # others have no memory sensor
    return None if r.board.temperature_celsius is None or not stacked else r.board.temperature_celsius + 6


def _remap_failed(r: Reading) -> float | None:
    return 1.0 if "row_remap_failed" in r.gpu.health_causes else 0.0


@dataclass(frozen=True, slots=True)
class Row:
    """One metric under its old and new name (None: not offered then), and how each is computed."""

    old: str | None
    new: str | None
    kind: str
    told: str
    value: Callable[[Reading], float | None]
    new_value: Callable[[Reading], float | None] | None = None  # None: the same unit in both


_P = "DCGM_FI_PROF_"
_D = "DCGM_FI_DEV_"
ROWS: tuple[Row, ...] = (
    Row(_D + "SM_CLOCK", None, "gauge", "SM clock frequency (in MHz).", _clock),
    Row(_D + "GPU_TEMP", _D + "GPU_TEMP_CELSIUS", "gauge", "GPU temperature (in C).",
        lambda r: r.board.temperature_celsius),
    Row(_D + "MEMORY_TEMP", _D + "MEMORY_TEMP_CELSIUS", "gauge", "Memory temperature (in C).", _memory_heat),
    Row(_D + "POWER_USAGE", _D + "BOARD_POWER_WATTS", "gauge", "Power draw (in W).", lambda r: r.board.power_watts),
    Row(_D + "ENFORCED_POWER_LIMIT", _D + "BOARD_POWER_LIMIT_ENFORCED_WATTS", "gauge", "Power limit in force (in W).",
        lambda r: r.board.power_limit_watts),
    Row(_D + "TOTAL_ENERGY_CONSUMPTION", None, "counter", "Energy since the exporter started (in mJ).",
        lambda r: _times(r.energy_joules, 1000)),
    Row(_D + "GPU_UTIL", _D + "GPU_UTIL_RATIO", "gauge", "Time with a kernel running (old name in %, new 0 to 1).",
        lambda r: _times(_utilization(r), 100), _utilization),
    Row(_D + "FB_USED", _D + "FB_USED_BYTES", "gauge", "Frame buffer used (old name in MiB, new in bytes).",
        lambda r: _mib(r.telemetry.memory_used_bytes), lambda r: r.telemetry.memory_used_bytes),
    Row(_D + "FB_FREE", _D + "FB_FREE_BYTES", "gauge", "Frame buffer free (old name in MiB, new in bytes).",
        lambda r: _mib(_free_bytes(r)), _free_bytes),
    Row(_D + "FB_TOTAL", _D + "FB_CAPACITY_BYTES", "gauge", "Frame buffer size (old name in MiB, new in bytes).",
        lambda r: _mib(r.telemetry.memory_total_bytes), lambda r: r.telemetry.memory_total_bytes),
    Row(_P + "GR_ENGINE_ACTIVE", _P + "GR_ENGINE_UTIL_RATIO", "gauge", "Time the graphics engine is active (0 to 1).",
        lambda r: r.engine),
    Row(_P + "PIPE_TENSOR_ACTIVE", _P + "TENSOR_UTIL_RATIO", "gauge", "Cycles the tensor pipe is active (0 to 1).",
        lambda r: _times(r.engine, 0.45)),
    Row(_P + "DRAM_ACTIVE", _P + "DRAM_UTIL_RATIO", "gauge", "Cycles the memory interface is active (0 to 1).",
        lambda r: _times(r.engine, 0.38)),
    Row(_P + "PCIE_TX_BYTES", None, "gauge", "PCIe traffic sent (in B/s).", lambda r: _times(r.engine, 2.1e9)),
    Row(_P + "PCIE_RX_BYTES", None, "gauge", "PCIe traffic received (in B/s).", lambda r: _times(r.engine, 3.4e9)),
    # The real one types it a counter in MB/s although it falls: readers must not trust the type.
    Row(_D + "NVLINK_BANDWIDTH_TOTAL", None, "counter", "NVLink traffic of all lanes (in MB/s).",
        lambda r: _times(_nvlink(r), 1e-6)),
    Row(_D + "UNCORRECTABLE_REMAPPED_ROWS", _D + "ROW_REMAP_UNCORRECTABLE_TOTAL", "counter",
        "Rows remapped for uncorrectable errors.", lambda r: 8 * (_remap_failed(r) or 0.0)),
    Row(_D + "ROW_REMAP_FAILURE", _D + "ROW_REMAP_FAILED", "gauge", "Whether remapping of rows has failed.",
        _remap_failed),
)  # fmt: skip
_XID_NAMES = {"old": _D + "XID_ERRORS", "new": _D + "XID_ERROR"}


@dataclass(frozen=True, slots=True)
class Style:
    """Which generation of names and which spelling of the host label is printed."""

    names: Names = "old"
    hostname_label: str = "Hostname"


def render_node(
    node: Node,
    pods: Mapping[tuple[int, str | None], list[Pod]],
    style: Style,
    energy_joules: Callable[[Gpu], float | None],
) -> str:
    """The page. A device without telemetry has no series, as one that fell off the bus."""
    sets = list(_series_sets(node, pods, style, energy_joules))
    parts: list[str] = []
    for row in ROWS:
        name = row.old if style.names == "old" else row.new
        if name is None:
            continue
        read = row.value if style.names == "old" or row.new_value is None else row.new_value
        lines = [f"{name}{{{text}}} {number(seen)}" for text, r in sets if (seen := read(r)) is not None]
        if lines:
            parts.append(family(name, row.kind, f"{row.told} {NOT_MEASURED}") + "\n".join(lines))
    name = _XID_NAMES[style.names]
    lines = [_xid_line(name, text, r.board.xid) for text, r in sets if r.board.xid]
    if lines:
        parts.append(family(name, "gauge", f"Last XID seen. {NOT_MEASURED}") + "\n".join(lines))
    return "\n".join(parts) + "\n" if parts else ""


def _series_sets(
    node: Node,
    pods: Mapping[tuple[int, str | None], list[Pod]],
    style: Style,
    energy_joules: Callable[[Gpu], float | None],
) -> Iterator[tuple[str, Reading]]:
    """One (labels, reading) per device and pod on it; per MIG instance where the device is cut."""
    for gpu in node.gpus:
        if gpu.telemetry is None:
            continue
        base, joules = _identity(node, gpu), energy_joules(gpu)
        if not gpu.mig_enabled:
            reading = Reading(gpu, gpu.telemetry, gpu.telemetry, joules)
            for pod in pods.get((gpu.index, None), ()) or (None,):
                yield labels((*base, *_tail(node, style, pod))), reading
            continue
        for instance in gpu.mig_instances:
            if instance.telemetry is None:
                continue
            reading = Reading(gpu, instance.telemetry, gpu.telemetry, joules, instance)
            mig = (("GPU_I_PROFILE", instance.profile), ("GPU_I_ID", instance.id))
            for pod in pods.get((gpu.index, instance.id), ()) or (None,):
                yield labels((*base, *mig, *_tail(node, style, pod))), reading


def _identity(node: Node, gpu: Gpu) -> tuple[tuple[str, str], ...]:
    return (
        ("gpu", str(gpu.index)),
        ("UUID", uuid_of(node, gpu)),
        ("pci_bus_id", f"00000000:{0x10 + 0x0B * gpu.index:02X}:00.0"),
        ("device", f"nvidia{gpu.index}"),
        ("modelName", gpu.product or gpu.model or "unknown"),
    )


def _tail(node: Node, style: Style, pod: Pod | None) -> tuple[tuple[str, str], ...]:
    host = ((style.hostname_label, node.name), (_DRIVER_LABEL[style.names], DRIVER_VERSION[style.names]))
    if pod is None:
        return host
    return (*host, ("container", CONTAINER), ("namespace", pod.namespace), ("pod", pod.member.name))


def _xid_line(name: str, text: str, xid: int | None) -> str:
    told = labels((("err_code", str(xid)), ("err_msg", _XID_TEXTS.get(xid or 0, "see the driver's XID catalogue"))))
    return f"{name}{{{text},{told}}} {xid}"


def uuid_of(node: Node, gpu: Gpu) -> str:
    """The device's own uuid, or one made from its place where the source names none."""
    if gpu.uuid:
        return gpu.uuid
    digits = f"{Random(f'{node.name}/{gpu.index}').getrandbits(128):032x}"
    return f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
