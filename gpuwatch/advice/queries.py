"""PromQL that gives a measured number again, in the names that the snapshot was read under, pinned to its instant.

A series may end and go on under other labels (a pod label comes and goes), and a device that pods share has a copy of
each series per pod: every query first makes one number per device, as the reader did, and only then one of them all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gpuwatch.counting.idleness import HeldDevice
from gpuwatch.dialects.dcgm import HOST_LABELS, TABLE, UUID_LABELS, series_name
from gpuwatch.fit.booking import Booking
from gpuwatch.model.evaluation import Evidence
from gpuwatch.model.snapshot import ClusterSnapshot

# signal of the activity window -> field
_SIGNALS = {"engine_active": "engine_active_ratio", "utilization": "utilization_ratio"}
_POWER = "power_watts"
_MEMORY = "memory_used_bytes"
# Where a snapshot was not read from monitoring, what most clusters have: the first name, and these labels.
_USUAL_UUID = ("UUID",)
_USUAL_HOSTS = ("Hostname", "hostname")
_REGEX_SPECIAL = set(".+*?()|[]{}^$\\")


@dataclass(frozen=True, slots=True)
class Selector:
    """The inside of a selector for some devices, and the labels that tell those devices apart."""

    text: str
    by: str


class DeviceQueries:
    """Evidence about one set of devices over one window that ends when the snapshot was taken."""

    def __init__(
        self, snapshot: ClusterSnapshot, booking: Booking, devices: Iterable[HeldDevice], window_seconds: int
    ) -> None:
        self._snapshot = snapshot
        self._booking = booking
        self._devices = tuple(devices)
        self._window = max(1, window_seconds)
        self._range = f"[{self._window}s] @ {instant(snapshot)}"

    def peak(self) -> Evidence:
        """Highest activity of any device."""
        return self._activity(self._highest, [d.measured.peak_ratio for d in self._devices])

    def mean(self) -> Evidence:
        """Mean activity of the busiest device."""
        return self._activity(self._average, [d.measured.mean_ratio for d in self._devices])

    def samples(self) -> Evidence:
        """Samples of the device that has the fewest."""
        query = f"min({self._of_signals(self._counted, scaled=False)})"
        return self._evidence(query, float(min(d.measured.samples for d in self._devices)), "samples")

    def memory(self) -> Evidence:
        """Highest memory use of any device, bytes."""
        query = f"max({self._each(_MEMORY, self._devices, self._highest)})"
        used = [d.measured.peak_memory_used_bytes for d in self._devices]
        known = [float(amount) for amount in used if amount is not None]
        return self._evidence(query, max(known) if len(known) == len(used) else None, "bytes", "no_memory_reading")

    def power(self) -> tuple[Evidence, ...]:
        """Mean power of the devices together, watts. None at all where one is a slice: the board's is not its own."""
        if any(d.mig_instance for d in self._devices):
            return ()
        query = f"sum({self._each(_POWER, self._devices, self._average)})"
        return (self._evidence(query, self.watts(), "watts", "no_power_reading"),)

    def watts(self) -> float | None:
        """Sum of the devices' mean power; None when one of them has none, or is a slice of a board."""
        watts = [None if d.mig_instance else d.measured.mean_power_watts for d in self._devices]
        known = [amount for amount in watts if amount is not None]
        return round(sum(known), 1) if known and len(known) == len(watts) else None

    def _activity(self, make: Callable[[str, str], str], values: list[float | None]) -> Evidence:
        known = [value for value in values if value is not None]
        value = max(known) if known and len(known) == len(values) else None
        return self._evidence(f"max({self._of_signals(make)})", value, "ratio", "no_telemetry")

    def _of_signals(self, make: Callable[[str, str], str], *, scaled: bool = True) -> str:
        """Each device by the signal that it was judged by."""
        groups: dict[str, list[HeldDevice]] = defaultdict(list)
        for device in self._devices:
            groups[_SIGNALS.get(device.measured.signal, "engine_active_ratio")].append(device)
        return " or ".join(self._each(field, mine, make, scaled=scaled) for field, mine in groups.items())

    def _each(
        self, field: str, devices: Iterable[HeldDevice], make: Callable[[str, str], str], *, scaled: bool = True
    ) -> str:
        """A vector with one number per device in the canonical unit; `make` turns (range selector, labels) into it."""
        known = series_name(field, "peak")
        names = [name for name in known if name in self._snapshot.metrics] or [known[0]]
        out = []
        for selector in selectors(self._snapshot, self._booking, devices):
            texts = [
                make(f"{name}{{{selector.text}}}{self._range}", selector.by) + (_times(name) if scaled else "")
                for name in names
            ]
            if len(texts) > 1:  # a device that speaks two vocabularies is still one device
                told = (
                    f'label_replace({text}, "name", "{name}", "", "")' for text, name in zip(texts, names, strict=True)
                )
                texts = [f"max by ({selector.by}) ({' or '.join(told)})"]
            out += texts
        return " or ".join(out)

    @staticmethod
    def _highest(series: str, by: str) -> str:
        return f"max_over_time({series})"  # the highest of all series, whoever they speak for

    @staticmethod
    def _average(series: str, by: str) -> str:
        return f"sum by ({by}) (sum_over_time({series})) / sum by ({by}) (count_over_time({series}))"

    def _counted(self, series: str, by: str) -> str:
        # Copies beside each other show the same samples again; series that follow each other add up.
        outer = "max" if any(self._shared(device) for device in self._devices) else "sum"
        return f"{outer} by ({by}) (count_over_time({series}))"

    def _shared(self, device: HeldDevice) -> bool:
        holds = self._booking.nodes[device.node].holds[device.position]
        return len({h.member.name for h in holds if h.mig_instance == device.mig_instance}) > 1

    def _evidence(self, query: str, value: float | None, unit: str, reason: str = "not_measured") -> Evidence:
        return Evidence(
            query=query,
            value=value,
            unit=unit,
            window_seconds=self._window,
            reason=reason if value is None else None,
        )


def instant(snapshot: ClusterSnapshot) -> str:
    """The snapshot's moment for PromQL's `@`, to the millisecond that its source asked at."""
    return f"{snapshot.taken_at.timestamp():.3f}".rstrip("0").rstrip(".")


def selectors(snapshot: ClusterSnapshot, booking: Booking, devices: Iterable[HeldDevice]) -> list[Selector]:
    """Label matchers that select the devices: by UUID, else by host and index, in the label spellings met."""
    uuids: dict[str | None, list[str]] = defaultdict(list)  # MIG instance (None: whole devices) -> UUIDs
    places: dict[tuple[str, str | None], list[str]] = defaultdict(list)
    for device in devices:
        gpu = booking.nodes[device.node].node.gpus[device.position]
        if gpu.uuid:
            uuids[device.mig_instance] += gpu.uuid_spellings or (gpu.uuid,)
        else:
            places[device.node, device.mig_instance].append(str(device.gpu_index))
    out = []
    for label in _met(snapshot, UUID_LABELS, _USUAL_UUID):
        for instance, names in uuids.items():
            out.append(Selector(_match(label, names) + _instance(instance), f"{label},GPU_I_ID"))
    for host in _met(snapshot, HOST_LABELS, _USUAL_HOSTS):
        for (node, instance), indexes in places.items():
            where = f'{host}="{quoted(node)}",{_match("gpu", indexes)}' + _instance(instance)
            out.append(Selector(where, f"{host},gpu,GPU_I_ID"))
    return out


def _met(snapshot: ClusterSnapshot, family: Iterable[str], usual: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in family if name in snapshot.spellings) or usual


def _times(name: str) -> str:
    """What turns the metric's unit into the canonical one."""
    factor = TABLE[name].factor
    if factor == 1:
        return ""
    return f" * {factor:.0f}" if factor > 1 else f" / {1 / factor:.0f}"


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
