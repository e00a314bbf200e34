"""A Frame as Prometheus text: one block per family, sorted by name; devices in their order.

Label texts of a device are built once and kept as long as the device keeps its identity: with a thousand samples a
cycle, escaping the same texts again would cost more than everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from gpuwatch_exporters.device.families import identity as about
from gpuwatch_exporters.device.family import INSTANCE_LABEL, Family
from gpuwatch_exporters.device.frame import DeviceFrame, Frame, Identity, InstanceFrame, Value, Workload
from gpuwatch_exporters.exposition import exact, family, labels

# lines of one family, in the order of devices
Blocks = dict[Family, list[str]]


def render_frame(frame: Frame) -> str:
    """The page's text, with a final newline; "" for a frame without any value."""
    blocks: Blocks = {}
    node = labels((("node", frame.node),))
    _add(blocks, node, frame.values)
    for scope, values in series(frame):
        _add(blocks, scope, values)
    ordered = sorted(blocks.items(), key=lambda pair: pair[0].name)
    return "".join(_head(each) + "".join(lines) for each, lines in ordered)


def series(frame: Frame) -> Iterator[tuple[str, Iterable[Value]]]:
    """(identity label text, values) of each device and MIG instance, the info series included."""
    held = _by_holder(frame.workloads)
    for device in frame.devices:
        yield identity_text(frame.node, device.identity), (*_told(device), *device.values, *_held(held, device, None))
        for instance in device.instances:
            text = identity_text(frame.node, device.identity, instance.id)
            yield text, (_instance_info(instance), *instance.values, *_held(held, device, instance.id))


# Sizes: 16 devices of 7 instances, and twice the label sets of such a node. What MIG and pods leave behind is soon out.
@lru_cache(maxsize=512)
def identity_text(node: str, who: Identity, instance: str | None = None) -> str:
    """The identity labels as text: node, gpu, uuid, and gpu_instance for a MIG instance."""
    pairs = [("node", node), ("gpu", "" if who.index is None else str(who.index)), ("uuid", who.uuid)]
    if instance is not None:
        pairs.append((INSTANCE_LABEL, instance))
    return labels(pairs)


def _told(device: DeviceFrame) -> Iterator[Value]:
    who = device.identity
    minor = "" if who.minor is None else str(who.minor)
    yield Value(about.INFO, (who.model, who.pci_bus_id, who.serial, minor, who.driver_version), 1)
    yield Value(about.UP, (), 1 if device.up else 0)
    if device.down_reason:
        yield Value(about.DOWN_INFO, (device.down_reason,), 1)


def _instance_info(instance: InstanceFrame) -> Value:
    start, size = instance.placement_start, instance.placement_size
    texts = ("" if start is None else str(start), "" if size is None else str(size))
    return Value(about.MIG_INSTANCE_INFO, (instance.profile or "", instance.uuid, *texts), 1)


def _by_holder(workloads: Iterable[Workload]) -> dict[tuple[str, str | None], list[Workload]]:
    held: dict[tuple[str, str | None], list[Workload]] = {}
    for each in dict.fromkeys(workloads):  # the same holder told twice is one series
        held.setdefault((each.uuid, each.instance), []).append(each)
    return held


def _held(
    held: dict[tuple[str, str | None], list[Workload]], device: DeviceFrame, instance: str | None
) -> Iterator[Value]:
    holders = held.get((device.identity.uuid, instance), ())
    for w in holders:
        yield Value(about.WORKLOAD_INFO, (w.namespace, w.pod, w.container, w.job_id, w.user, w.source), 1)
    if holders:
        yield Value(about.WORKLOADS, (), len(holders))


def _add(blocks: Blocks, scope: str, values: Iterable[Value]) -> None:
    for each, texts, amount in values:
        lines = blocks.get(each)
        if lines is None:
            lines = blocks[each] = []
        own = "," + _own(each, texts) if texts else ""
        lines.append(f"{each.name}{{{scope}{own}}} {exact(amount)}\n")


@lru_cache(maxsize=2048)
def _own(each: Family, texts: tuple[str, ...]) -> str:
    return labels(zip(each.labels, texts, strict=True))


@lru_cache(maxsize=512)
def _head(each: Family) -> str:
    return family(each.name, each.kind, each.help)
