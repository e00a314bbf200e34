"""Three names that many boards and scripts expect: nvidia_gpu_utilization_gpu in percent, and memory in bytes.

The two of memory are those of the first exporters for NVML. The utilization is in no exporter's source: it is what
people make of that prefix and the field of nvidia-smi.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gpuwatch_exporters.device.compat import COMPATS
from gpuwatch_exporters.device.frame import DeviceFrame, Frame, Value
from gpuwatch_exporters.exposition import family, labels, number


@dataclass(slots=True)
class NvidiaNames:
    """See the module. Labels: those of our own device series, and minor_number, name and uuid as those exporters."""

    help: str = "nvidia_gpu_utilization_gpu (percent), nvidia_gpu_memory_used_bytes, nvidia_gpu_memory_total_bytes"

    def render(self, frame: Frame) -> str:
        parts = []
        for name, ours, factor, told in _ROWS:
            lines = [f"{name}{{{text}}} {number(amount * factor)}\n" for text, amount in _found(frame, ours)]
            if lines:
                parts.append(family(name, "gauge", told) + "".join(lines))
        return "".join(parts)


_ROWS = (
    ("nvidia_gpu_utilization_gpu", "gpuwatch_gpu_utilization_ratio", 100.0, "Time with a kernel running (percent)."),
    ("nvidia_gpu_memory_used_bytes", "gpuwatch_gpu_memory_used_bytes", 1.0, "Memory in use (bytes)."),
    ("nvidia_gpu_memory_total_bytes", "gpuwatch_gpu_memory_total_bytes", 1.0, "Memory there is (bytes)."),
)


def _found(frame: Frame, ours: str) -> Iterator[tuple[str, float]]:
    for device in frame.devices:
        yield from ((_text(frame.node, device), amount) for amount in _of(device.values, ours))
        for instance in device.instances:
            text = _text(frame.node, device, (("gpu_instance", instance.id),))
            yield from ((text, amount) for amount in _of(instance.values, ours))


def _of(values: Iterable[Value], ours: str) -> Iterator[float]:
    return (each.number for each in values if each.family.name == ours)


def _text(node: str, device: DeviceFrame, more: tuple[tuple[str, str], ...] = ()) -> str:
    who = device.identity
    pairs = (
        ("node", node),
        ("gpu", "" if who.index is None else str(who.index)),
        ("uuid", who.uuid),
        ("minor_number", "" if who.minor is None else str(who.minor)),
        ("name", who.model),
    )
    return labels((*pairs, *more))


COMPATS.register("nvidia")(NvidiaNames())
