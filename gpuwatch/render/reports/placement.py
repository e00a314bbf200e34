"""The answer to a what-if: ranked placements, or why nothing fits and what would."""

from __future__ import annotations

from typing import Any

from gpuwatch.model.placement import (
    NO_SINGLE_CHANGE,
    Assignment,
    GpuCountOption,
    GpuMemoryNeed,
    PlacementAdvice,
    PlacementChoice,
)
from gpuwatch.model.units import GIB, MILLI, gib
from gpuwatch.render.places import places, ranges
from gpuwatch.render.report import Cell, Column, Lines, Report, Row, Section, Table

_COLUMNS = (
    Column("rank", "#"),
    Column("nodes", "Where", flex=True),
    Column("before", "Index before", "0-100", digits=2),
    Column("after", "Index after", "0-100", digits=2),
    Column("stranded", "Stranded change", "GPUs", digits=3),
    Column("blocked", "Blocks shapes"),
)
_BLOCKER_COLUMNS = (Column("cause", "Why not"), Column("nodes", "Nodes", "count"))
_OPTION_COLUMNS = (
    Column("gpus", "GPUs a member"),
    Column("memory", "Each needs", "GiB", digits=1),
    Column("cards", "Cards here that have it", flex=True),
    Column("nodes", "Nodes", "count"),
)
_EXCLUDED_COLUMNS = (Column("card", "Card"), Column("why", "Why not", flex=True))
_FLAT_KEYS = (
    *("rank", "member", "node", "pool", "gpu_model", "gpus", "fragmentation_before", "fragmentation_after"),
    *("stranded_delta_milligpu", "blocked_shapes", "mixed_generations"),
)


def placement_report(advice: PlacementAdvice, document: dict[str, Any]) -> Report:
    """What `gpuwatch place` prints; `document` is the placement document of the same advice."""
    sections: list[Section] = [Lines(title="Placement", lines=tuple(_sentences(advice)))]
    if advice.gpu_memory is not None:
        sections += _memory(advice.gpu_memory)
    if advice.choices:
        sections.append(Table(title="Choices", columns=_COLUMNS, rows=tuple(_row(each) for each in advice.choices)))
    if advice.blockers:
        blockers = sorted(advice.blockers.items(), key=lambda pair: (-pair[1], pair[0]))
        rows: tuple[Row, ...] = tuple(
            {"cause": cause.replace("_", " ").replace(":", ": "), "nodes": count} for cause, count in blockers
        )
        sections.append(Table(title="Nodes without room", columns=_BLOCKER_COLUMNS, rows=rows))
    return Report(
        title=f"Placement in {document['cluster']}",
        document=document,
        sections=tuple(sections),
        flat=Table(
            title="",
            columns=tuple(Column(key, key) for key in _FLAT_KEYS),
            rows=tuple(row for choice in advice.choices for row in _flat_rows(choice)),
        ),
        notes=() if advice.feasible else ("nothing has room for the whole request",),
    )


def _sentences(advice: PlacementAdvice) -> list[str]:
    if advice.feasible:
        order = ": cards that suit the need before others, then" if advice.gpu_memory else ","
        return [f"It fits. Best first{order} as policy {advice.policy} ranks.", *_mixtures(advice)]
    out = ["It does not fit as asked."]
    if advice.fits_by_sum_not_by_shape:
        out.append("Enough is free in all, but not together where the request needs it.")
    if advice.nearest_fix == NO_SINGLE_CHANGE:
        out.append(f"{NO_SINGLE_CHANGE.capitalize()}.")
    elif advice.nearest_fix:
        out.append(f"Cheapest change that makes it fit: {advice.nearest_fix}.")
    return out


def _mixtures(advice: PlacementAdvice) -> list[str]:
    mixed = [each for each in advice.choices if each.mixed_generations]
    return [f"Choice {each.rank} mixes card generations: {', '.join(each.mixed_generations)}." for each in mixed]


def _memory(need: GpuMemoryNeed) -> list[Section]:
    lines = [f"Each GPU must have {gib(need.gpu_memory_bytes)} for the job."]
    if need.device_memory_bytes is not None:
        lines.append(
            f"That is its share of the memory of a GPU, which must have {gib(need.device_memory_bytes)} in all."
        )
    if need.formula is not None and need.total_bytes is not None:
        lines.append(f"{need.formula}; {gib(need.total_bytes)} in all.")
        lines += [f"Assumed: {each}." for each in need.assumptions]
    if need.options:
        lines.append(f"The number of GPUs was left open; all else is told for {need.gpus} a member.")
    if need.preferred_models:
        lines.append(f"Cards for a need of this size: {', '.join(need.preferred_models)}.")
    sections: list[Section] = [Lines(title="GPU memory", lines=tuple(lines))]
    if need.options:
        rows = tuple(_option(each) for each in need.options)
        sections.append(Table(title="Numbers of GPUs", columns=_OPTION_COLUMNS, rows=rows))
    if need.excluded:
        cards: tuple[Row, ...] = tuple({"card": card, "why": why} for card, why in need.excluded.items())
        sections.append(Table(title="Cards that cannot take it", columns=_EXCLUDED_COLUMNS, rows=cards))
    return sections


def _option(option: GpuCountOption) -> Row:
    return {
        "gpus": option.gpus,
        "memory": option.gpu_memory_bytes / GIB,
        "cards": ", ".join(option.gpu_models) or "none",
        "nodes": option.nodes,
    }


def _row(choice: PlacementChoice) -> dict[str, Cell]:
    return {
        "rank": choice.rank,
        "nodes": _where(choice.assignments),
        "before": choice.fragmentation_before,
        "after": choice.fragmentation_after,
        "stranded": choice.stranded_delta_milligpu / MILLI,
        "blocked": ", ".join(choice.blocked_shapes) or "none",
    }


def _where(assignments: tuple[Assignment, ...]) -> str:
    """ "n[01-16] (H100-80) GPU 0-3 each": nodes that get the same are told once."""
    members: dict[str, list[Assignment]] = {}
    for each in assignments:
        members.setdefault(each.node, []).append(each)
    return places((node, _on_node(there)) for node, there in members.items())


def _on_node(members: list[Assignment]) -> str:
    devices = ranges(index for each in members for index in each.gpus)
    model = sorted({each.gpu_model or "model unknown" for each in members})
    crowd = f"{len(members)} members" if len(members) > 1 else ""
    if not devices:
        return crowd
    return f"({', '.join(model)}) {crowd}{' on ' if crowd else ''}GPU {devices}"


def _flat_rows(choice: PlacementChoice) -> list[dict[str, Cell]]:
    return [
        {
            "rank": choice.rank,
            "member": member,
            "node": each.node,
            "pool": each.pool,
            "gpu_model": each.gpu_model,
            "gpus": " ".join(map(str, each.gpus)),
            "fragmentation_before": choice.fragmentation_before,
            "fragmentation_after": choice.fragmentation_after,
            "stranded_delta_milligpu": choice.stranded_delta_milligpu,
            "blocked_shapes": "; ".join(choice.blocked_shapes),
            "mixed_generations": " ".join(choice.mixed_generations),
        }
        for member, each in enumerate(choice.assignments)
    ]
