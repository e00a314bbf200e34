"""A row of `nodes` as a Node."""

from __future__ import annotations

from collections.abc import Iterable

from gpuwatch_exporters.slurm.read import gres as gres_text
from gpuwatch_exporters.slurm.read import tres as tres_text
from gpuwatch_exporters.slurm.read.fields import Row, count, names, text, words
from gpuwatch_exporters.slurm.read.states import node_state
from gpuwatch_exporters.slurm.read.unknown import Unknown
from gpuwatch_exporters.slurm.records import UNTYPED, Gres, Node

_SHARES = ("shard", "mps")  # parts of a GPU; a GPU is given out whole or in shares, never both


def read_node(row: Row, unknown: Unknown) -> Node | None:
    """None, and counted, for a row without a name."""
    name = text(row.get("name"))
    if not name:
        unknown.add("row", "a node without a name")
        return None
    base, condition, flags = node_state((*words(row.get("state")), *words(row.get("state_flags"))), unknown)
    installed = gres_text.read_gres(text(row.get("gres")), unknown)
    used_gres = gres_text.read_gres(text(row.get("gres_used")), unknown)
    configured = tres_text.read_tres(text(row.get("tres")), unknown)
    gpus = gres_text.by_type(installed) or tres_text.gpus(configured)
    used = _used(row, gpus, configured, used_gres, unknown)
    memory, memory_used = count(row.get("real_memory")), count(row.get("alloc_memory"))
    return Node(
        name=name,
        condition=condition,
        base=base,
        flags=flags,
        partitions=names(row.get("partitions")),
        gpus=gpus,
        gpus_used=used,
        gpus_shared=_shared(used_gres, gpus, used or {}),
        used_indices=_indices(used_gres),
        others=tuple(each for each in installed if each.name != "gpu"),
        cpus=count(row.get("cpus")),
        cpus_used=count(row.get("alloc_cpus")),
        memory_bytes=None if memory is None else memory * tres_text.MIB,
        memory_used_bytes=None if memory_used is None else memory_used * tres_text.MIB,
        gpus_tracked=tres_text.tracks_gpus(configured),
    )


def _used(
    row: Row, gpus: dict[str, int], configured: dict[str, float], used_gres: list[Gres], unknown: Unknown
) -> dict[str, int] | None:
    """GPUs in use by type. gres_used is exact, also for requests without a type; tres_used counts a typed GPU under
    its type only where the job asked for the type, and is read where there is no gres_used."""
    if not gpus:
        return {}
    found = gres_text.by_type(used_gres)
    if not any(each.name == "gpu" for each in used_gres):
        if tres_text.tracks_gpus(configured):
            found = tres_text.gpus(tres_text.read_tres(text(row.get("tres_used")), unknown))
        elif count(row.get("alloc_cpus")) != 0:
            return None  # something runs there, and nothing tells what it took
    return _same_types(found, gpus)


def _shared(used_gres: Iterable[Gres], gpus: dict[str, int], used: dict[str, int]) -> dict[str, int]:
    """GPUs by type of which shares are in use, counted by their indices: the oldest release that knows shards prints
    the number of such GPUs where later ones print the number of shares."""
    counts: dict[str, int] = {}
    for each in used_gres:
        if each.name in _SHARES:
            counts[each.type] = counts.get(each.type, 0) + len(each.indices or ())
    return _same_types(counts, {kind: max(installed - used.get(kind, 0), 0) for kind, installed in gpus.items()})


def _same_types(used: dict[str, int], gpus: dict[str, int]) -> dict[str, int]:
    """Gives what is used under no type of the node to types with room: first come, first filled."""
    out = {kind: held for kind, held in used.items() if kind in gpus and held}
    stray = sum(held for kind, held in used.items() if kind not in gpus)
    for kind, installed in gpus.items():
        taken = min(stray, max(installed - out.get(kind, 0), 0))
        if taken:
            out[kind] = out.get(kind, 0) + taken
            stray -= taken
    if stray:
        out[UNTYPED] = out.get(UNTYPED, 0) + stray
    return out


def _indices(used: Iterable[Gres]) -> frozenset[int] | None:
    """Indices in use; None where one entry counts GPUs in use and does not tell which."""
    out: frozenset[int] = frozenset()
    for each in used:
        if each.name != "gpu":
            continue
        if each.indices is None and each.count:
            return None
        out |= each.indices or frozenset()
    return out
