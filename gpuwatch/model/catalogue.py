"""The GPU catalogue: what a card is, matched from the many product strings that exporters and node labels print.

The data live in gpus.toml. A string that no card claims, or that several memory sizes share and no memory decides, is
matched to nothing: a wrong card would give wrong advice, and None is said aloud.
"""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from gpuwatch.model.values import value

_NOISE = re.compile(r"(-MIG-\d+g\.\d+gb([.+]\w+)*|-SHARED)$", re.IGNORECASE)  # a label writes .me for +me
_SEPARATORS = re.compile(r"[\s_\-]+")
_MEMORY_TOLERANCE = 0.08  # drivers report 2 to 6% less than the sold size, depending on ECC and reservations


@value
class MigProfile:
    """One slice size, in compute slices and memory slices of its geometry; placements are its first memory slices.

    sm_count and memory_mib are None where nobody has told them for this card and size.
    """

    name: str
    compute_slices: int
    memory_slices: int
    placements: tuple[int, ...]
    media_extensions: bool = False  # "+me": one such instance at most on a device
    sm_count: int | None = None
    memory_mib: int | None = None


@value
class MigGeometry:
    """How a device of one card and memory size can be cut."""

    compute_slices: int  # sum over the instances at most
    memory_slices: int  # instances never share one
    size_gb: int  # the memory size that the profile names follow from
    profiles: tuple[MigProfile, ...]

    def profile(self, name: str) -> MigProfile | None:
        """The profile of this name; None when this device has none."""
        return next((each for each in self.profiles if each.name == name), None)


@value
class Card:
    """One product: figures as the maker states them; memory as its driver reports it (a measured total wins)."""

    id: str
    generation: str
    memory_total_mib: int
    board_power_watts: int
    nvlink_version: int | None  # None: no NVLink
    nvlink_bytes_per_second: int | None  # both directions together, all links
    placement_tier: int  # 1 (smallest) .. 7; a job that leaves a high tier idle may do on a lower one
    mig: MigGeometry | None  # at its usual memory size; None: the card cannot be cut
    mig_sizes_gb: tuple[int, ...]  # memory sizes that it is known to report, the usual one first
    patterns: tuple[str, ...]

    @property
    def mig_profiles(self) -> tuple[MigProfile, ...]:
        """Its profiles at its usual memory size."""
        return self.mig.profiles if self.mig else ()


_MEDIA = "+me"
_USUAL_SLICES = (7, 8)
_NAME = re.compile(r"^(\dg\.)(\d+)gb")
_MIB_PER_GB = 1024  # the driver rounds up to whole GiB and calls them gb
_SIZE_TOLERANCE = 0.02  # a total that leaves out what the driver reserves is still the size that is sold


@cache
def cards() -> dict[str, Card]:
    """All cards by id, in the order of the data file (which is the order of matching)."""
    return {entry["id"]: _card(entry) for entry in _raw()["card"]}


def card(model: str | None) -> Card | None:
    """The card with this catalogue id; None for any other string."""
    return cards().get(model) if model else None


def match(product: str | None, memory_total_mib: float | None = None) -> Card | None:
    """The card that a product string names.

    `memory_total_mib` decides between memory sizes sold under one name; a size that contradicts the match within 8%
    gives None (a variant we do not know).
    """
    if not product:
        return None
    found = claiming(product)
    if memory_total_mib is not None:
        found = [
            c for c in found if abs(c.memory_total_mib - memory_total_mib) <= _MEMORY_TOLERANCE * c.memory_total_mib
        ]
    return found[0] if len(found) == 1 else None


def claiming(product: str) -> list[Card]:
    """Every card that may be printed so: several where memory sizes are sold under one name."""
    text = normalize(product)
    return [card for card in cards().values() if any(re.search(pattern, text) for pattern in card.patterns)]


def normalize(product: str) -> str:
    """Upper case, single spaces, no maker, brand or sharing suffix: "NVIDIA-H100-80GB-HBM3" -> "H100 80GB HBM3"."""
    text = _SEPARATORS.sub(" ", _NOISE.sub("", product.strip())).upper()
    return re.sub(r"^(NVIDIA )?(TESLA |GEFORCE )?", "", text).strip()


def slices_of(model: str | None) -> tuple[int, int]:
    """(compute slices, memory slices) of a device in MIG mode; those of nearly every card where nobody knows better."""
    known = card(model)
    return (known.mig.compute_slices, known.mig.memory_slices) if known and known.mig else _USUAL_SLICES


def mig_geometry(
    model: str | None, memory_total_mib: float | None = None, seen: tuple[str, ...] = ()
) -> MigGeometry | None:
    """How a device of this catalogue id can be cut, under the profile names that it would report.

    Profile names follow from the memory size that a device reports, and one card is made in several: the size is that
    of the reported total, else the one whose names cover the profiles `seen` on the device, else the usual one. A name
    of `seen` that is off by one gb is taken as the device writes it. None for cards that cannot be cut and for unknown
    ones.
    """
    known = card(model)
    if known is None or known.mig is None:
        return None
    cuts = [_sized(known.id, size) for size in known.mig_sizes_gb]
    if memory_total_mib is not None and memory_total_mib > 0:
        reported = math.ceil(memory_total_mib / _MIB_PER_GB)
        nearest = min(known.mig_sizes_gb, key=lambda size: abs(size - reported))
        size = nearest if abs(nearest - reported) <= _SIZE_TOLERANCE * nearest else reported
        cuts = [_sized(known.id, size), _as_reported(_sized(known.id, size), seen), *cuts]
    covers = (cut for cut in cuts if {*seen} <= {profile.name for profile in cut.profiles})
    return next(covers, None) or _as_reported(cuts[0], seen)


@cache
def _raw() -> dict[str, Any]:
    return tomllib.loads(resources.files("gpuwatch.model").joinpath("gpus.toml").read_text(encoding="utf-8"))


@cache
def _sized(model: str, size_gb: int) -> MigGeometry:
    entry = next(entry for entry in _raw()["card"] if entry["id"] == model)
    return _geometry(entry["mig"], size_gb)


def _geometry(mig: dict[str, Any], size_gb: int) -> MigGeometry:
    cut = next(each for each in _raw()["geometry"] if each["id"] == mig["geometry"])
    memory = mig.get("memory_mib", {}) if size_gb == mig["sizes_gb"][0] else {}
    return MigGeometry(
        compute_slices=cut["compute_slices"],
        memory_slices=cut["memory_slices"],
        size_gb=size_gb,
        profiles=tuple(
            MigProfile(
                name=_profile_name(kind, each, cut["memory_slices"], size_gb),
                compute_slices=each["compute"],
                memory_slices=each["memory"],
                placements=tuple(each["starts"]),
                media_extensions=kind.endswith(_MEDIA),
                sm_count=mig.get("sm", {}).get(kind),
                memory_mib=memory.get(kind),
            )
            for kind, each in cut["profiles"].items()
        ),
    )


def _as_reported(cut: MigGeometry, seen: tuple[str, ...]) -> MigGeometry:
    """The geometry with those profiles renamed whose name the device rounds the other way."""
    told = [(head, int(size)) for name in seen for head, size in _NAME.findall(name)]
    profiles = []
    for profile in cut.profiles:
        head, size = next(((head, int(size)) for head, size in _NAME.findall(profile.name)), ("", 0))
        near = [other for its_head, other in told if its_head == head and abs(other - size) <= 1]
        profiles.append(replace(profile, name=profile.name.replace(f"{size}gb", f"{near[0]}gb")) if near else profile)
    return replace(cut, profiles=tuple(profiles))


def _profile_name(kind: str, profile: dict[str, Any], memory_slices: int, size_gb: int) -> str:
    """ "3g.71gb" for 4 of 8 memory slices of 141 GB: the share of the whole, halves rounded up, as the driver does."""
    share = math.floor(size_gb * profile["memory"] / memory_slices + 0.5)
    suffix = "".join(re.findall(r"[+-].*", kind))
    return f"{profile['compute']}g.{share}gb{suffix}"


def _card(entry: dict[str, Any]) -> Card:
    mig = entry.get("mig")
    return Card(
        id=entry["id"],
        generation=entry["generation"],
        memory_total_mib=entry["memory_total_mib"],
        board_power_watts=entry["board_power_watts"],
        nvlink_version=entry.get("nvlink_version"),
        nvlink_bytes_per_second=entry.get("nvlink_gigabytes_per_second", 0) * 10**9 or None,
        placement_tier=entry["placement_tier"],
        mig=_geometry(mig, mig["sizes_gb"][0]) if mig else None,
        mig_sizes_gb=tuple(mig["sizes_gb"]) if mig else (),
        patterns=tuple(entry["patterns"]),
    )
