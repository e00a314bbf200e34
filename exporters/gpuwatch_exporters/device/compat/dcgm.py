"""The names of NVIDIA's dcgm-exporter: up to 4.8 as `dcgm`, since 4.9 as `dcgm-4.9`.

Its habits are kept, the odd ones too, since boards and alerts are written around them: under MIG only instances have
series and the board's power or temperature stands on each of them; a device that several pods share has one series
for each; a device that does not answer has none, but for its XIDs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gpuwatch_exporters.device.compat import COMPATS
from gpuwatch_exporters.device.compat.dcgm_rows import ROWS, Row
from gpuwatch_exporters.device.families import dcgm, xid
from gpuwatch_exporters.device.frame import Frame, Identity, InstanceFrame, Value, Workload
from gpuwatch_exporters.exposition import family, labels, number

Pairs = tuple[tuple[str, str], ...]
Values = Mapping[str, Mapping[tuple[str, ...], float]]  # by family, by own labels
_XID_TEXTS = {
    13: "Exception in the graphics engine", 31: "Page fault in GPU memory", 43: "GPU stopped processing",
    45: "Work removed early", 48: "Uncorrectable memory error", 63: "Row remapping recorded",
    64: "Row remapping failed", 74: "NVLink error", 79: "GPU fell off the bus", 94: "Contained memory error",
    95: "Uncontained memory error", 119: "No answer of the GPU's firmware",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Generation:
    """What changed at 4.9: names, units, the labels of host and driver."""

    new: bool
    host_label: str
    driver_label: str
    xid_name: str


@dataclass(frozen=True, slots=True)
class Target:
    """What has a set of series: a device, or an instance of it. `texts`: its labels, once for each holder."""

    device: Values
    instance: Values | None
    texts: tuple[str, ...]


@dataclass(slots=True)
class DcgmNames:
    """See the module."""

    help: str
    generation: Generation

    def render(self, frame: Frame) -> str:
        targets = list(_targets(frame, self.generation))
        parts = []
        for row in ROWS:
            name = row.new if self.generation.new else row.old
            if name is None:
                continue
            told = row.new_help or row.help if self.generation.new else row.help
            lines = [f"{name}{{{text}}} {amount}\n" for text, amount in self._lines(row, targets)]
            if lines:
                parts.append(family(name, row.kind, told) + "".join(lines))
        return "".join((*parts, *self._xids(targets), *_health(targets)))

    def _lines(self, row: Row, targets: Iterable[Target]) -> Iterator[tuple[str, str]]:
        factor = row.new_factor if self.generation.new else row.factor
        for target in targets:
            source = _source(row, target)
            amount = None if source is None else _sum(row, source)
            if amount is None:
                continue
            amount *= factor
            told = number(round(amount) if row.whole and factor != 1 else amount)
            yield from ((text, told) for text in target.texts)

    def _xids(self, targets: Iterable[Target]) -> Iterator[str]:
        """The last code of each device, and the count of each: absent until there was one."""
        last, counts = [], []
        for target in targets:
            times = target.device.get(xid.XID_LAST.name, {})
            if times:
                [code] = max(times, key=lambda each: (times[each], each))
                about = labels((("err_code", code), ("err_msg", _XID_TEXTS.get(int(code), f"XID {code}"))))
                last += [f"{self.generation.xid_name}{{{text},{about}}} {code}\n" for text in target.texts]
            for (code,), times_ in target.device.get(xid.XID_ERRORS.name, {}).items():
                counts += [
                    f'DCGM_EXP_XID_ERRORS_TOTAL{{{text},xid="{code}"}} {number(times_)}\n' for text in target.texts
                ]
        if last:
            yield family(self.generation.xid_name, "gauge", "Code of the last XID.") + "".join(last)
        if counts:
            yield family("DCGM_EXP_XID_ERRORS_TOTAL", "counter", "XIDs of each code.") + "".join(counts)


def _health(targets: Iterable[Target]) -> Iterator[str]:
    """DCGM's own checks, where the frame comes from DCGM."""
    name = "DCGM_EXP_GPU_HEALTH_STATUS"
    lines = [
        f'{name}{{{text},health_watch="{watch.upper()}"}} {number(level)}\n'
        for target in targets
        for (watch,), level in target.device.get(dcgm.HEALTH.name, {}).items()
        for text in target.texts
    ]
    if lines:
        yield family(name, "gauge", "DCGM's check of a part of the GPU: 0 passed, 10 warns, 20 failed.") + "".join(
            lines
        )


def _source(row: Row, target: Target) -> Values | None:
    """Where the row's values are: None where the target has none of its own."""
    if target.instance is None or row.of == "board":
        return target.device
    return target.instance if row.of == "instance" else None


def _sum(row: Row, source: Values) -> float | None:
    """The families' values added up; where one of them has none, that of the family which stands in for them."""
    total = 0.0
    for name in row.families:
        part = _part(row, source.get(name))
        if part is None:
            return _part(row, source.get(row.otherwise))
        total += part
    return total


def _part(row: Row, found: Mapping[tuple[str, ...], float] | None) -> float | None:
    if not found:
        return None
    if row.weights is not None:
        return sum(amount * row.weights.get(label, 0.0) for (label,), amount in found.items())
    return found.get(row.labels)


def _targets(frame: Frame, generation: Generation) -> Iterator[Target]:
    held = defaultdict(list)
    for each in frame.workloads:
        held[each.uuid, each.instance].append(each)
    host = (generation.host_label, frame.node)
    for device in frame.devices:
        who = device.identity
        tail = (host, (generation.driver_label, who.driver_version)) if who.driver_version else (host,)
        own = _by_family(device.values)
        parts: tuple[InstanceFrame | None, ...] = device.instances or (None,)
        for part in parts:
            # Who holds the whole device holds each part of it.
            holders = held[who.uuid, part.id if part else None] + (held[who.uuid, None] if part else [])
            texts = tuple(labels((*_identity(who), *_mig(part), *tail, *each)) for each in _holders(holders))
            yield Target(own, _by_family(part.values) if part else None, texts)


def _by_family(values: Iterable[Value]) -> Values:
    out: dict[str, dict[tuple[str, ...], float]] = {}
    for of, texts, amount in values:
        out.setdefault(of.name, {})[texts] = amount
    return out


def _identity(who: Identity) -> Pairs:
    index = "" if who.index is None else str(who.index)
    return (
        ("gpu", index),
        ("UUID", who.uuid),
        ("pci_bus_id", _long_address(who.pci_bus_id)),
        ("device", f"nvidia{index}"),
        ("modelName", who.model),
    )


def _mig(part: InstanceFrame | None) -> Pairs:
    return () if part is None else (("GPU_I_PROFILE", part.profile or ""), ("GPU_I_ID", part.id))


def _holders(holders: Iterable[Workload]) -> list[Pairs]:
    """Labels of each pod or job, once each; one empty set where there is none."""
    found: dict[Pairs, None] = {}
    for each in holders:
        if each.pod:
            found[("container", each.container), ("namespace", each.namespace), ("pod", each.pod)] = None
        elif each.job_id:
            found[(("hpc_job", each.job_id),)] = None
    return list(found) or [()]


def _long_address(pci_bus_id: str) -> str:
    """DCGM's spelling of an address: "0000:18:00.0" -> "00000000:18:00.0", digits in upper case."""
    domain, colon, rest = pci_bus_id.partition(":")
    return f"{domain.rjust(8, '0')}:{rest}".upper() if colon else pci_bus_id


COMPATS.register("dcgm")(
    DcgmNames(
        "dcgm-exporter up to 4.8: DCGM_FI_* in percent, MiB, MHz, mJ",
        Generation(False, "Hostname", "DCGM_FI_DRIVER_VERSION", "DCGM_FI_DEV_XID_ERRORS"),
    )
)
COMPATS.register("dcgm-4.9")(
    DcgmNames(
        "dcgm-exporter since 4.9: DCGM_FI_* in base units",
        Generation(True, "hostname", "DCGM_FI_SYSTEM_DRIVER_VERSION", "DCGM_FI_DEV_XID_ERROR"),
    )
)
