"""Three names that many boards and scripts expect: nvidia_gpu_utilization_gpu in percent, and memory in bytes.

The two of memory are those of the first exporters for NVML. The utilization is in no exporter's source: it is what
people make of that prefix and the field of nvidia-smi.

They are names of whole devices: a MIG instance beside its device would count the same memory twice in each sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpuwatch_exporters.device.compat import COMPATS
from gpuwatch_exporters.device.frame import DeviceFrame, Frame
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
        text = _text(frame.node, device)
        yield from ((text, each.number) for each in device.values if each.family.name == ours)


def _text(node: str, device: DeviceFrame) -> str:
    who = device.identity
    pairs = (
        ("node", node),
        ("gpu", "" if who.index is None else str(who.index)),
        ("uuid", who.uuid),
        ("minor_number", "" if who.minor is None else str(who.minor)),
        ("name", who.model),
    )
    return labels(pairs)


COMPATS.register("nvidia")(NvidiaNames())
