"""GPU memory: what a model needs, which cards have it, and which of these it should go to.

The estimate is bytes per parameter, from published rules of thumb; it tells its terms and assumptions. A card is
accepted when its memory suffices; the tiers only say which of the accepted ones come first.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from gpuwatch.fit.booking import Booking
from gpuwatch.fit.columns import IntArray, bounded
from gpuwatch.model.catalogue import card
from gpuwatch.model.placement import ModelSize, Precision
from gpuwatch.model.units import MIB, decimal

GPU_COUNTS = (1, 2, 4, 8)  # per member, tried when the number is left open
UNKNOWN_MEMORY = 0
GB = 10**9

# Training with a 16-bit or narrower model and Adam in 32 bits, per parameter.
_GRADIENTS, _OPTIMIZER, _ACTIVATIONS = 2, 12, 2
# Serving: attention cache and activations, per parameter: a fifth of the weights in 16 bits.
_CACHE = 0.4


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes of a model on all devices together; `parts` sum to `total_bytes`."""

    total_bytes: int
    parts: dict[str, int]
    formula: str
    assumptions: tuple[str, ...]


def estimate(size: ModelSize) -> Estimate:
    """What a model of this size takes, whole."""
    weight = _data()["precision"][size.precision]["bytes"]
    if size.purpose == "training":
        terms = {"weights": weight, "gradients": _GRADIENTS, "optimizer": _OPTIMIZER, "activations": _ACTIVATIONS}
        assumptions: tuple[str, ...] = (
            "mixed-precision Adam: gradients in 16 bits; master weights and two moments in 32",
            "activations are recomputed, which leaves about 2 bytes each; long sequences or large batches need more",
        )
    else:
        terms = {"weights": weight, "cache_and_activations": _CACHE}
        assumptions = (
            "attention cache and activations take a fifth of the weights in 16 bits; long contexts or many requests at "
            "once need more",
        )
    parts = {name: round(size.parameters * each) for name, each in terms.items()}
    told = " + ".join(f"{each:g} {name.replace('_', ' ')}" for name, each in terms.items())
    billions = decimal(size.parameters / 10**9)
    return Estimate(
        total_bytes=sum(parts.values()),
        parts=parts,
        formula=f"{billions} billion parameters x ({told}) = {sum(terms.values()):g} bytes each in {size.precision}",
        assumptions=(*assumptions, "all devices of all members share the model evenly"),
    )


def computes_in(model: str | None, precision: Precision) -> bool | None:
    """Whether a card computes in `precision`; None for one that the catalogue does not know, unless every card does."""
    generations = _data()["precision"][precision].get("generations")
    if generations is None:
        return True
    found = card(model)
    return None if found is None else found.generation in generations


def preference(need_bytes: int, light_inference: bool) -> tuple[tuple[str, ...], ...]:
    """Groups of cards to which a need of one device should go, first choice first; each group as good as its members.

    light_inference: serving on one device alone.
    """
    light = _data()["light_inference"]
    tier = next((each["cards"] for each in _data()["tier"] if need_bytes > each["above_gb"] * GB), ())
    first = (tuple(light["cards"]),) if light_inference and need_bytes <= light["at_most_gb"] * GB else ()
    return (*first, tuple(tier))


def made_for(need_bytes: int, light_inference: bool, precision: Precision | None = None) -> tuple[str, ...]:
    """Cards of preference() that have the memory, as the catalogue tells it, and compute in `precision`; in order."""
    named = (name for group in preference(need_bytes, light_inference) for name in group)
    fit = (name for name in named if _usual(name) >= need_bytes)
    return tuple(name for name in fit if precision is None or computes_in(name, precision))


def last_choice() -> tuple[str, ...]:
    """Cards that come after all others unless preference() names them."""
    return tuple(_data()["light_inference"]["cards"])


def device_memory(booking: Booking, width: int) -> IntArray:
    """(N, W) bytes of each device: as measured, else as the catalogue has it for the card; UNKNOWN_MEMORY where neither
    is known, and on padding."""
    memory = np.full((len(booking.nodes), width), UNKNOWN_MEMORY, dtype=np.int64)
    for row, booked in enumerate(booking.nodes.values()):
        memory[row, : len(booked.node.gpus)] = [
            _usual(gpu.model) if gpu.memory_total_bytes is None else bounded(gpu.memory_total_bytes)
            for gpu in booked.node.gpus
        ]
    return memory


@cache
def _usual(model: str | None) -> int:
    found = card(model)
    return found.memory_total_mib * MIB if found else UNKNOWN_MEMORY


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(resources.files("gpuwatch.fit").joinpath("gpu_memory.toml").read_text(encoding="utf-8"))
