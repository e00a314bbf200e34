"""From the words of a source to a device or MIG instance of the frame."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gpuwatch_exporters.device.frame import DeviceFrame, InstanceFrame
from gpuwatch_exporters.holders.holding import Ref


class Slot(NamedTuple):
    """A device of the frame, or one MIG instance of it."""

    uuid: str
    instance: str | None = None


# Replicas of a shared device: "GPU-...::3" of NVIDIA's plugin, "nvidia0/vgpu1" of the one in Google's clusters.
_REPLICA = re.compile(r"(?:::\d+|/vgpu\d+)$")
# Names of NVIDIA's DRA driver: gpu-<minor>, gpu-<minor>-mig-<profile>-<profile id>-<start>, and before 25.8
# gpu-<minor>-mig-<profile id>-<start>-<size>. In the CDI name of a claim they come after the claim's uid.
_DRA_DEVICE = re.compile(r"(?:^|[=-])gpu-(\d+)$")
_DRA_MIG = re.compile(r"(?:^|[=-])gpu-(\d+)-mig-(?:(\d+)-(\d+)-(\d+)|(.*[a-z].*)-\d+-(\d+))$")
_PCI = re.compile(r"(?:0000)?([0-9a-f]{4}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])")


class Devices:
    """The devices of a frame by all the names that sources use for them."""

    def __init__(self, devices: Iterable[DeviceFrame]) -> None:
        self._texts: dict[str, Slot] = {}
        self._indices: dict[str, Slot] = {}
        self._minors: dict[str, Slot] = {}
        self._migs: dict[str, Slot] = {}
        self._starts: dict[tuple[str, int], list[tuple[InstanceFrame, Slot]]] = {}
        self.minors_known = True
        self.has_instances = False
        for device in devices:
            self._add(device)

    def find(self, ref: Ref) -> Slot | None:
        """The device that the source means; None for one that is not here."""
        if ref.kind == "mig":
            return self._migs.get(ref.text)
        if ref.kind == "minor":
            return self._minors.get(ref.text)
        if ref.kind == "index":
            return self._indices.get(_REPLICA.sub("", ref.text)) or self._text(ref.text)
        if ref.kind == "number":
            # Slurm's number is that of the device file; where MIG is on it counts instances too, and means nothing.
            known = {} if self.has_instances else self._minors if self.minors_known else self._indices
            return known.get(ref.text) or self._text(ref.text)
        return self._text(ref.text)

    def _add(self, device: DeviceFrame) -> None:
        who, slot = device.identity, Slot(device.identity.uuid)
        for text in (who.uuid, who.uuid.removeprefix("GPU-"), who.pci_bus_id):
            if text:
                self._texts.setdefault(text.lower(), slot)
        if who.index is not None:
            self._indices[str(who.index)] = slot
        if who.minor is None:
            self.minors_known = False
        else:
            self._minors[str(who.minor)] = slot
            self._texts[f"nvidia{who.minor}"] = slot
        for place, instance in enumerate(device.instances):
            self._add_instance(device, place, instance)

    def _add_instance(self, device: DeviceFrame, place: int, instance: InstanceFrame) -> None:
        who, slot = device.identity, Slot(device.identity.uuid, instance.id)
        self.has_instances = True
        gpu_instance, _, compute = instance.id.partition("/")
        ids = f"{gpu_instance}/{compute or 0}"
        if instance.uuid:
            self._texts[instance.uuid.lower()] = slot
        self._texts[f"mig-{who.uuid}/{ids}".lower()] = slot
        if who.index is not None:
            self._indices[f"{who.index}:{place}"] = slot
        if who.minor is None:
            return
        self._migs[f"{who.minor}/{ids}"] = slot
        self._texts[f"nvidia{who.minor}/gi{gpu_instance}"] = slot
        if instance.placement_start is not None:
            self._starts.setdefault((str(who.minor), instance.placement_start), []).append((instance, slot))

    def _text(self, text: str) -> Slot | None:
        known = _REPLICA.sub("", text.strip().lower())
        known = known.rpartition("=")[2] if "/" in known.partition("=")[0] else known  # a CDI name: vendor/class=name
        if (found := self._texts.get(known)) is not None:
            return found
        if pci := _PCI.fullmatch(known):
            return self._texts.get(f"{pci[1]}:{pci[2]}")
        if mig := _DRA_MIG.search(known):
            return self._placed(mig)
        if device := _DRA_DEVICE.search(known):
            # Without minors an index would be a guess, and a wrong one where the two differ.
            return self._minors.get(device[1])
        return None

    def _placed(self, mig: re.Match[str]) -> Slot | None:
        minor, _, start, size, profile, later_start = mig.groups()
        for instance, slot in self._starts.get((minor, int(start or later_start)), ()):
            if size is not None and instance.placement_size == int(size):
                return slot
            if profile is not None and _plain(instance.profile or "") == _plain(profile):
                return slot
        return None


def _plain(profile: str) -> str:
    """1g.10gb+me -> 1g10gbme, as device names may hold neither a point nor a plus."""
    return re.sub(r"[^a-z0-9]", "", profile.lower())


def slots(devices: Devices, refs: Iterable[Ref]) -> Iterator[tuple[Ref, Slot | None]]:
    """Each ref with what it means here; several refs of one device (time slices) come once."""
    seen: set[Slot] = set()
    for ref in refs:
        slot = devices.find(ref)
        if slot is None or slot not in seen:
            yield ref, slot
        if slot is not None:
            seen.add(slot)
