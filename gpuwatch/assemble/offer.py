"""What a node object says about its GPUs: how many stand there, how they are cut or shared, how many are offered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuwatch.assemble.resources import COUNTED, SHARED, WHOLE, is_gpu, mig_profile, product_mig_profile
from gpuwatch.model import catalogue
from gpuwatch.model.observations import NodeRecord
from gpuwatch.model.units import MIB

_MOST_DEVICES = 4096  # a label that counts more devices in one machine counts something else
_MEMORY_OF_COMPUTE = {1: 1, 2: 2, 3: 4, 4: 4, 7: 8}


@dataclass(frozen=True, slots=True)
class Offer:
    """A node's GPUs by its own account. Counts are of physical devices, whatever the resource counts."""

    whole: int = 0
    whole_allocatable: int = 0
    profiles: Mapping[str, int] = field(default_factory=dict)  # MIG profile -> slices
    profiles_allocatable: Mapping[str, int] = field(default_factory=dict)
    labelled: int = 0  # devices that the node's labels count; 0 when they do not
    replicas: int = 1
    whole_is_profile: str | None = None  # every device is cut alike, and the plain resource counts its slices
    product: str | None = None
    memory_bytes: int | None = None
    offered: bool = False  # the scheduler knows a GPU resource of this node, be it 0

    @property
    def unhealthy(self) -> int:
        """Devices that the device plugin holds back."""
        return max(0, self.whole - self.whole_allocatable)

    @property
    def devices(self) -> int:
        """Fewest physical devices that can stand there."""
        cut = cut_devices(self.profiles, self.product)
        return max(self.whole + cut, 0 if self.whole_is_profile else self.labelled)


def offer_of(record: NodeRecord, *, fractions: bool) -> Offer:
    """Reads the offer. `fractions`: pods here ask for percents of a device, so that the plain resource is a multiple
    of the devices that nobody states; then only labels and series count them."""
    labels = record.labels
    product = labels.get("nvidia_com_gpu_product")
    single = product_mig_profile(product)
    replicas = max(1, _whole(labels.get("nvidia_com_gpu_replicas")))
    memory_mib = _whole(labels.get("nvidia_com_gpu_memory"))
    capacity, cut = _count(record.capacity, replicas, single)
    allocatable, cut_allocatable = _count(record.allocatable, replicas, single)
    labelled = _whole(labels.get("nvidia_com_gpu_count"))
    labelled = labelled if labelled <= _MOST_DEVICES else 0
    if fractions and labelled:
        allocatable, capacity = (min(labelled, allocatable), labelled)
    return Offer(
        whole=capacity,
        whole_allocatable=allocatable,
        profiles=cut,
        profiles_allocatable=cut_allocatable,
        labelled=labelled,
        replicas=1 if single else replicas,
        whole_is_profile=single,
        product=product,
        memory_bytes=memory_mib * MIB if memory_mib and not single else None,
        offered=any(is_gpu(name) for name in (*record.capacity, *record.allocatable)),
    )


def _count(amounts: Mapping[str, float], replicas: int, single: str | None) -> tuple[int, dict[str, int]]:
    plain = sum(amounts.get(name, 0.0) for name in (*WHOLE, *SHARED))
    counted = sum(amounts.get(name, 0.0) for name in COUNTED)  # the same devices under another scheduler's name
    cut: Counter[str] = Counter()
    for name, amount in amounts.items():
        if profile := mig_profile(name):
            cut[profile] += round(amount / replicas)
    if single:
        cut[single] += round(plain)
        return 0, dict(sorted(cut.items()))
    return max(round(-(-plain // replicas)), round(counted)), dict(sorted(cut.items()))


def profile_slices(profile: str, product: str | None) -> tuple[int, int]:
    """(compute slices, memory slices) of a profile; by the card's table, else by the profile's own name."""
    card = catalogue.match(product)
    for known in card.mig_profiles if card else ():
        if known.name == profile.split("+")[0]:
            return known.compute_slices, known.memory_slices
    compute = int(profile.split("g.")[0])
    return compute, _MEMORY_OF_COMPUTE.get(compute, compute)


def device_slices(product: str | None) -> tuple[int, int]:
    """(compute slices, memory slices) of the device that the node's label names."""
    card = catalogue.match(product)
    return catalogue.slices_of(card.id if card else None)


def cut_devices(profiles: Mapping[str, int], product: str | None) -> int:
    """Fewest devices that can carry these slices, by compute and by memory slices."""
    compute = memory = 0
    most = device_slices(product)
    for profile, count in profiles.items():
        each = profile_slices(profile, product)
        compute += each[0] * count
        memory += each[1] * count
    return max(-(-compute // most[0]), -(-memory // most[1]))


def _whole(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() else 0
