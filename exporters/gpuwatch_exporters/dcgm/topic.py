"""A field of DCGM and a topic of fields, as the list of topics declares them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuwatch_exporters.dcgm.layout import GPU


@dataclass(frozen=True, slots=True)
class Field:
    """One field of DCGM as a family of ours: its name, the values of the family's own labels, and the factor to its
    unit. bits: a mask, of which each bit is one sample, by bit number -> label. choices: what each number of DCGM is
    here; others are no value. zero_is_none: 0 is what a device tells that has no such thing."""

    family: str
    labels: tuple[str, ...] = ()
    factor: float = 1.0
    bits: Mapping[int, str] | None = None
    choices: Mapping[int, float] | None = None
    zero_is_none: bool = False


@dataclass(frozen=True, slots=True)
class Topic:
    """Fields that are watched together, on GPUs and on MIG instances. slow: changes seldom.
    events: every sample counts, not only the last."""

    fields: Mapping[int, Field]
    kinds: tuple[int, ...] = (GPU,)
    slow: bool = False
    events: bool = False
