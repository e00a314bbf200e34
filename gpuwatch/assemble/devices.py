"""Readings grouped by physical device: one uuid is one GPU, however many series speak of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from gpuwatch.assemble.hosts import Hosts
from gpuwatch.model.observations import Holder, Reading, ScrapeTarget
from gpuwatch.model.snapshot import Finding

# Who a series speaks for and where it was scraped. Series of one identity are copies of each other; series of several
# identities follow each other in time, or stand side by side when several pods share the device.
Identity = tuple[Holder | None, ScrapeTarget | None]


@dataclass(slots=True)
class Series:
    """The values of one device or slice: newest per field, and per identity those of the window."""

    now: dict[str, float] = field(default_factory=dict)
    live: set[Identity] = field(default_factory=set)
    window: dict[str, dict[Identity, dict[str, float]]] = field(default_factory=dict)
    holders: set[Holder] = field(default_factory=set)

    def add(self, reading: Reading) -> None:
        identity = (reading.holder, reading.target)
        if reading.statistic == "now":
            # Copies of one reading differ only by when they were taken: the largest can hide no work.
            self.now[reading.field] = max(self.now.get(reading.field, reading.value), reading.value)
            self.live.add(identity)
            if reading.holder:
                self.holders.add(reading.holder)
        else:
            stats = self.window.setdefault(reading.field, {}).setdefault(identity, {})
            stats[reading.statistic] = max(stats.get(reading.statistic, reading.value), reading.value)

    def absorb(self, other: Series) -> None:
        """Takes the other's values in, as if its series had been read for this device."""
        for name, number in other.now.items():
            self.now[name] = max(self.now.get(name, number), number)
        self.live |= other.live
        self.holders |= other.holders
        for name, identities in other.window.items():
            self.window.setdefault(name, {}).update(identities)


@dataclass(slots=True)
class Device:
    """One physical GPU as its series tell it. `board` also takes what is repeated on each slice."""

    node: str
    uuid: str | None
    index: int | None = None  # settled when all series are read
    numbers: dict[bool, set[int]] = field(default_factory=lambda: {True: set(), False: set()})  # told now, told earlier
    products: set[str] = field(default_factory=set)
    uuid_texts: set[str] = field(default_factory=set)
    board: Series = field(default_factory=Series)
    slices: dict[str, Series] = field(default_factory=dict)
    profiles: dict[str, str | None] = field(default_factory=dict)
    targets: set[ScrapeTarget] = field(default_factory=set)

    @property
    def product(self) -> str | None:
        """The product string; where series disagree, the first by name, so that their order decides nothing."""
        return min(self.products, default=None)

    @property
    def number(self) -> int | None:
        """The index that series tell, newest ones first."""
        return min(self.numbers[True] or self.numbers[False], default=None)

    @property
    def live(self) -> bool:
        """Does any series speak of it now?"""
        return bool(self.board.live) or any(part.live for part in self.slices.values())

    @property
    def holders(self) -> set[Holder]:
        return self.board.holders.union(*(part.holders for part in self.slices.values()))

    def add(self, reading: Reading) -> None:
        ref = reading.device
        if ref.index is not None:
            self.numbers[reading.statistic == "now"].add(ref.index)
        if ref.product:
            self.products.add(ref.product)
        if ref.uuid_text:
            self.uuid_texts.add(ref.uuid_text)
        if reading.target:
            self.targets.add(reading.target)
        if ref.mig_id is None:
            self.board.add(reading)
            return
        part = self.slices.setdefault(ref.mig_id, Series())
        self._add_profile(ref.mig_id, ref.mig_profile)
        if not reading.board:
            part.add(reading)
            return
        # The board's value, repeated on a slice: it counts once, but it does show who holds the slice.
        self.board.add(Reading(device=ref, field=reading.field, value=reading.value, statistic=reading.statistic))
        if reading.statistic == "now":
            part.live.add((reading.holder, reading.target))
            part.holders |= {reading.holder} if reading.holder else set()

    def absorb(self, other: Device) -> None:
        """Takes the other's series in: the same device, seen on a machine that was called otherwise."""
        self.board.absorb(other.board)
        for mig_id, part in other.slices.items():
            self.slices.setdefault(mig_id, Series()).absorb(part)
            self._add_profile(mig_id, other.profiles.get(mig_id))
        self.targets |= other.targets
        self.products |= other.products
        self.uuid_texts |= other.uuid_texts
        for newest, numbers in other.numbers.items():
            self.numbers[newest] |= numbers

    def _add_profile(self, mig_id: str, profile: str | None) -> None:
        known = self.profiles.get(mig_id)
        self.profiles[mig_id] = min(known, profile) if known and profile else known or profile


def collect(readings: Iterable[Reading], hosts: Hosts) -> tuple[dict[str, list[Device]], list[Finding]]:
    """Devices by node name, in order of index, and what the series disagree about."""
    found: dict[tuple[str, str], Device] = {}
    named: dict[tuple[str, int], str] = {}
    anonymous: list[tuple[str, Reading]] = []
    for reading in readings:
        node, ref = hosts.of_reading(reading), reading.device
        if ref.uuid is None:
            anonymous.append((node, reading))
            continue
        found.setdefault((ref.uuid, node), Device(node=node, uuid=ref.uuid)).add(reading)
        if ref.index is not None and reading.statistic == "now":
            named[node, ref.index] = min(named.get((node, ref.index), ref.uuid), ref.uuid)
    findings: list[Finding] = []
    devices = _one_per_uuid(found, hosts, findings)
    for node, reading in anonymous:
        _add_anonymous(devices, named, node, reading, findings)
    by_node: dict[str, list[Device]] = defaultdict(list)
    for device in devices.values():
        by_node[device.node].append(device)
    return {node: _indexed(node, mine, findings) for node, mine in sorted(by_node.items())}, findings


def _one_per_uuid(found: dict[tuple[str, str], Device], hosts: Hosts, findings: list[Finding]) -> dict[str, Device]:
    claims: dict[str, list[Device]] = defaultdict(list)
    for (uuid, _), device in sorted(found.items()):
        claims[uuid].append(device)
    kept: dict[str, Device] = {}
    for uuid, claimed in claims.items():
        first, *others = sorted(claimed, key=lambda d: (not d.live, d.node not in hosts.known, d.node))
        for other in others:
            if other.live and other.node in hosts.known:
                where = f"series on {first.node} and on {other.node} both claim it; those on {other.node} are left out"
                findings.append(Finding(code="uuid_claimed_twice", severity="warning", subject=uuid, detail=where))
            else:  # the machine was called otherwise before, or by another label
                first.absorb(other)
        kept[uuid] = first
    return kept


def _add_anonymous(
    devices: dict[str, Device],
    named: dict[tuple[str, int], str],
    node: str,
    reading: Reading,
    findings: list[Finding],
) -> None:
    index = reading.device.index
    if index is None:
        detail = "a series names neither the uuid nor the index of its device; it is left out"
        findings.append(Finding(code="unnamed_device", severity="warning", subject=node, detail=detail))
        return
    key = named.get((node, index), f"{node}/{index}")
    devices.setdefault(key, Device(node=node, uuid=None)).add(reading)


def _indexed(node: str, mine: list[Device], findings: list[Finding]) -> list[Device]:
    """Unique indexes. A device that is gone and whose place another one took has been replaced."""
    taken: set[int] = set()
    placed: list[Device] = []
    waiting: list[Device] = []
    for device in mine:
        device.index = device.number
    for device in sorted(mine, key=lambda d: (not d.live, d.index is None, d.index or 0, d.uuid or "")):
        if device.index is not None and device.index not in taken:
            taken.add(device.index)
            placed.append(device)
        elif device.live:
            waiting.append(device)
            if device.index is not None:
                detail = f"two live devices call themselves number {device.index}; one got another number"
                findings.append(Finding(code="index_claimed_twice", severity="warning", subject=node, detail=detail))
    for device in waiting:
        device.index = next_free(taken)
        placed.append(device)
    return sorted(placed, key=lambda d: d.index or 0)


def next_free(taken: set[int]) -> int:
    """The lowest number that is not in `taken`, which then holds it."""
    index = next(i for i in range(len(taken) + 1) if i not in taken)
    taken.add(index)
    return index
