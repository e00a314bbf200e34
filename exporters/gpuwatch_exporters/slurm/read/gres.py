"""Generic resources as Slurm spells them: gpu:h100:8(S:0-1), gpu:(null):4(IDX:0-3,6), shard:h100:3(1/4,2/4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gpuwatch_exporters.slurm.read.unknown import Unknown
from gpuwatch_exporters.slurm.records import UNTYPED, Gres

_PREFIX = re.compile(r"gres[:/]", re.IGNORECASE)
_COUNT = re.compile(r"(\d+)([KMGTP]?)", re.IGNORECASE)
_SHARES = re.compile(r"[\d-]+/\d+(,[\d-]+/\d+)*\)")
_FACTORS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
_NONE = {"", "(null)", "N/A", "n/a", "none"}


def read_gres(told: str, unknown: Unknown) -> list[Gres]:
    """The entries of a gres text; one that is not understood is counted and left out."""
    out = []
    for part in split(told):
        entry = _entry(part)
        if entry is None:
            unknown.add("gres", part)
        else:
            out.append(entry)
    return out


def split(told: str) -> Iterator[str]:
    """Parts between commas, but not those inside parentheses."""
    depth, begin = 0, 0
    for at, char in enumerate(told):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            yield from _told(told[begin:at])
            begin = at + 1
    yield from _told(told[begin:])


def by_type(entries: Iterable[Gres], name: str = "gpu") -> dict[str, int]:
    """Counts by type of the resource `name`."""
    out: dict[str, int] = {}
    for each in entries:
        if each.name == name:
            out[each.type] = out.get(each.type, 0) + each.count
    return out


def indices(told: str) -> frozenset[int]:
    """0-2,5 as numbers; "N/A" is none. ValueError for anything else."""
    out: set[int] = set()
    for part in told.split(","):
        if part in _NONE:
            continue
        low, _, high = part.partition("-")
        first, last = int(low), int(high or low)
        if last - first > 4096:
            raise ValueError(f"{part!r} is no range of devices")
        out.update(range(first, last + 1))
    return frozenset(out)


def _told(part: str) -> Iterator[str]:
    if part.strip() not in _NONE:
        yield part.strip()


def _entry(part: str) -> Gres | None:
    bare = _PREFIX.sub("", part.replace("(null)", ""), count=1)
    head, _, tail = bare.partition("(")
    pieces = [piece.strip() for piece in head.replace("=", ":").split(":")]
    if not pieces[0]:
        return None
    amount = _COUNT.fullmatch(pieces[-1]) if len(pieces) > 1 else None
    kind = ":".join(piece for piece in (pieces[1:-1] if amount else pieces[1:]) if piece and piece != "no_consume")
    many = int(amount[1]) * _FACTORS[amount[2].upper()] if amount else 1  # gpu:h100 asks for one
    return Gres(pieces[0].lower(), kind or UNTYPED, many, _indices(tail))


def _indices(tail: str) -> frozenset[int] | None:
    """Devices in use, from (IDX:0-2), or from the shares in use of each, (1/4,0/4,-/4)."""
    if _SHARES.fullmatch(tail):
        return frozenset(at for at, share in enumerate(tail.split(",")) if re.match(r"0*[1-9]", share))
    found = re.search(r"IDX:([^)]*)\)", tail)
    if not found:
        return None
    try:
        return indices(found[1])
    except ValueError:
        return None
