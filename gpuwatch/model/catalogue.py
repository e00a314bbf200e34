"""The GPU catalogue: what a card is, matched from the many product strings that exporters and node labels print.

The data live in gpus.toml. A string that no card claims, or that several memory sizes share and no memory decides, is
matched to nothing: a wrong card would give wrong advice, and None is said aloud.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Any

from gpuwatch.model.values import value

_NOISE = re.compile(r"(-MIG-\d+g\.\d+gb(\+\w+)?|-SHARED)$", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\s_\-]+")
_MEMORY_TOLERANCE = 0.08  # drivers report 2 to 6% less than the sold size, depending on ECC and reservations


@value
class MigProfile:
    """One slice size, in compute slices (of 7) and memory slices (of 8); placements are its first memory slices."""

    name: str
    compute_slices: int
    memory_slices: int
    placements: tuple[int, ...]


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
    mig_profiles: tuple[MigProfile, ...]
    patterns: tuple[str, ...]


# profile suffix -> (compute slices, memory slices, first memory slices): the geometry shared by all 8-slice cards
_GEOMETRY: dict[str, tuple[int, int, tuple[int, ...]]] = {
    "1g": (1, 1, (0, 1, 2, 3, 4, 5, 6)),
    "1g_double": (1, 2, (0, 2, 4, 6)),
    "2g": (2, 2, (0, 2, 4)),
    "3g": (3, 4, (0, 4)),
    "4g": (4, 4, (0,)),
    "7g": (7, 8, (0,)),
}


@cache
def cards() -> dict[str, Card]:
    """All cards by id, in the order of the data file (which is the order of matching)."""
    raw = tomllib.loads(resources.files("gpuwatch.model").joinpath("gpus.toml").read_text(encoding="utf-8"))
    return {entry["id"]: _card(entry) for entry in raw["card"]}


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
    text = normalize(product)
    found = [c for c in cards().values() if any(re.search(p, text) for p in c.patterns)]
    if memory_total_mib is not None:
        found = [
            c for c in found if abs(c.memory_total_mib - memory_total_mib) <= _MEMORY_TOLERANCE * c.memory_total_mib
        ]
    return found[0] if len(found) == 1 else None


def normalize(product: str) -> str:
    """Upper case, single spaces, no maker, brand or sharing suffix: "NVIDIA-H100-80GB-HBM3" -> "H100 80GB HBM3"."""
    text = _SEPARATORS.sub(" ", _NOISE.sub("", product.strip())).upper()
    return re.sub(r"^(NVIDIA )?(TESLA |GEFORCE )?", "", text).strip()


def _card(entry: dict[str, Any]) -> Card:
    names: dict[str, str] = entry.get("mig", {})
    profiles = tuple(
        MigProfile(name=names[key], compute_slices=compute, memory_slices=memory, placements=starts)
        for key, (compute, memory, starts) in _GEOMETRY.items()
        if key in names
    )
    return Card(
        id=entry["id"],
        generation=entry["generation"],
        memory_total_mib=entry["memory_total_mib"],
        board_power_watts=entry["board_power_watts"],
        nvlink_version=entry.get("nvlink_version"),
        nvlink_bytes_per_second=entry.get("nvlink_gigabytes_per_second", 0) * 10**9 or None,
        placement_tier=entry["placement_tier"],
        mig_profiles=profiles,
        patterns=tuple(entry["patterns"]),
    )
