"""Trackable resources as Slurm spells them: cpu=32,mem=200G,node=2,gres/gpu=16,gres/gpu:h100=16."""

from __future__ import annotations

import re

from gpuwatch_exporters.slurm.read.unknown import Unknown
from gpuwatch_exporters.slurm.records import UNTYPED

MIB = 2**20
_AMOUNT = re.compile(r"([0-9.]+)([KMGTPE]?)", re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_TOTAL, _TYPED = "gres/gpu", "gres/gpu:"


def read_tres(told: str, unknown: Unknown) -> dict[str, float]:
    """Amount by name; memory in bytes (Slurm's plain number is mebibytes). What is not understood is left out."""
    out: dict[str, float] = {}
    for part in filter(None, (piece.strip() for piece in told.split(","))):
        name, _, amount = part.partition("=")
        found = _AMOUNT.fullmatch(amount)
        try:
            if not found:
                raise ValueError(part)
            plain, unit = float(found[1]), found[2].upper()
        except ValueError:
            unknown.add("tres", part)
            continue
        is_memory = name in ("mem", "vmem")
        out[name] = plain * (1024.0 ** _POWERS[unit] if unit else MIB if is_memory else 1)
    return out


def gpus(amounts: dict[str, float]) -> dict[str, int]:
    """GPUs by type. The plain entry is the sum of all, so that types are never added to it; what no type accounts for
    is untyped. Empty where nothing tells GPUs, which is not the same as none: see `tracks_gpus`."""
    typed = {name[len(_TYPED) :]: int(held) for name, held in amounts.items() if name.startswith(_TYPED)}
    rest = int(amounts.get(_TOTAL, 0)) - sum(typed.values())
    out = {kind: held for kind, held in typed.items() if held}
    if rest > 0:
        out[UNTYPED] = rest
    return out


def tracks_gpus(amounts: dict[str, float]) -> bool:
    """Whether the text tells GPUs at all: Slurm tracks them only where AccountingStorageTRES names gres/gpu."""
    return any(name.startswith(_TOTAL) for name in amounts)
