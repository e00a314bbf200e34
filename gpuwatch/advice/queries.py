"""PromQL that gives a measured number again, in the vocabulary of dcgm-exporter, pinned to the snapshot's instant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from gpuwatch.counting.idleness import HeldDevice
from gpuwatch.fit.booking import Booking
from gpuwatch.model.evaluation import Evidence
from gpuwatch.model.units import MIB

# signal of the activity window -> (metric, suffix that turns it into 0..1)
_SIGNALS = {
    "engine_active": ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", ""),
    "utilization": ("DCGM_FI_DEV_GPU_UTIL", " / 100"),
}
_POWER = "DCGM_FI_DEV_POWER_USAGE"
_MEMORY = "DCGM_FI_DEV_FB_USED"
_REGEX_SPECIAL = set(".+*?()|[]{}^$\\")


class DeviceQueries:
    """Evidence about one set of devices over one window that ends at `taken_at`."""

    def __init__(
        self, booking: Booking, devices: Iterable[HeldDevice], window_seconds: int, taken_at: datetime
    ) -> None:
        self._devices = tuple(devices)
        self._selectors = selectors(booking, self._devices)
        self._window = max(1, window_seconds)
        self._at = round(taken_at.timestamp())

    def peak(self) -> Evidence:
        """Highest activity of any device."""
        return self._activity("max", "max_over_time", [d.measured.peak_ratio for d in self._devices])

    def mean(self) -> Evidence:
        """Mean activity of the busiest device."""
        return self._activity("max", "avg_over_time", [d.measured.mean_ratio for d in self._devices])

    def samples(self) -> Evidence:
        """Samples of the device that has the fewest."""
        query = f"min({self._over('count_over_time', self._signal()[0])})"
        return self._evidence(query, float(min(d.measured.samples for d in self._devices)), "samples")

    def memory(self) -> Evidence:
        """Highest memory use of any device, bytes."""
        query = f"max({self._over('max_over_time', _MEMORY)}) * {MIB}"
        used = [d.measured.peak_memory_used_bytes for d in self._devices]
        known = [float(amount) for amount in used if amount is not None]
        return self._evidence(query, max(known) if len(known) == len(used) else None, "bytes", "no_memory_reading")

    def power(self) -> Evidence:
        """Mean power of the devices together, watts."""
        return self._evidence(f"sum({self._over('avg_over_time', _POWER)})", self.watts(), "watts", "no_power_reading")

    def watts(self) -> float | None:
        """Sum of the devices' mean power; None when one of them has none, or is a slice of a board."""
        watts = [None if d.mig_instance else d.measured.mean_power_watts for d in self._devices]
        known = [amount for amount in watts if amount is not None]
        return round(sum(known), 1) if known and len(known) == len(watts) else None

    def _activity(self, outer: str, over: str, values: list[float | None]) -> Evidence:
        metric, suffix = self._signal()
        known = [value for value in values if value is not None]
        value = max(known) if known and len(known) == len(values) else None
        return self._evidence(f"{outer}({self._over(over, metric)}){suffix}", value, "ratio", "no_telemetry")

    def _signal(self) -> tuple[str, str]:
        names = {d.measured.signal for d in self._devices}
        return _SIGNALS["utilization" if names == {"utilization"} else "engine_active"]

    def _over(self, function: str, metric: str) -> str:
        parts = [f"{function}({metric}{{{sel}}}[{self._window}s] @ {self._at})" for sel in self._selectors]
        return " or ".join(parts)

    def _evidence(self, query: str, value: float | None, unit: str, reason: str = "not_measured") -> Evidence:
        return Evidence(
            query=query,
            value=value,
            unit=unit,
            window_seconds=self._window,
            reason=reason if value is None else None,
        )


def selectors(booking: Booking, devices: Iterable[HeldDevice]) -> list[str]:
    """Label matchers that select the devices: by UUID, else by host and index in both spellings of the host label."""
    uuids: dict[str | None, list[str]] = defaultdict(list)  # MIG instance (None: whole devices) -> UUIDs
    places: dict[tuple[str, str | None], list[str]] = defaultdict(list)
    for device in devices:
        uuid = booking.nodes[device.node].node.gpus[device.position].uuid
        if uuid:
            uuids[device.mig_instance].append(uuid)
        else:
            places[device.node, device.mig_instance].append(str(device.gpu_index))
    out = [_match("UUID", names) + _instance(instance) for instance, names in uuids.items()]
    for (node, instance), indexes in places.items():
        where = _match("gpu", indexes) + _instance(instance)
        out += [f'{host}="{quoted(node)}",{where}' for host in ("Hostname", "hostname")]
    return out


def quoted(text: str) -> str:
    """`text` for the inside of a double-quoted PromQL string."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _match(label: str, values: list[str]) -> str:
    unique = sorted(set(values))
    if len(unique) == 1:
        return f'{label}="{quoted(unique[0])}"'
    either = "|".join("".join("\\" + c if c in _REGEX_SPECIAL else c for c in value) for value in unique)
    return f'{label}=~"{quoted(either)}"'


def _instance(instance: str | None) -> str:
    return "" if instance is None else f',GPU_I_ID="{quoted(instance)}"'
