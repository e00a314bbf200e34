"""The answer to a what-if: ranked placements, or why nothing fits and what would."""

from __future__ import annotations

from collections import Counter
from typing import Any

from gpuwatch.model.placement import Assignment, PlacementAdvice, PlacementChoice
from gpuwatch.model.units import MILLI
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
_FLAT_KEYS = (
    *("rank", "member", "node", "pool", "gpu_model", "gpus", "fragmentation_before", "fragmentation_after"),
    *("stranded_delta_milligpu", "blocked_shapes"),
)


def placement_report(advice: PlacementAdvice, document: dict[str, Any]) -> Report:
    """What `gpuwatch place` prints; `document` is the placement document of the same advice."""
    sections: list[Section] = [Lines(title="Placement", lines=tuple(_sentences(advice)))]
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
        return [f"It fits. Best first, as policy {advice.policy} ranks."]
    out = ["It does not fit as asked."]
    if advice.fits_by_sum_not_by_shape:
        out.append("Enough GPUs are free in all, but not in this shape: fragmentation keeps it out.")
    if advice.nearest_fix:
        out.append(f"Cheapest change that makes it fit: {advice.nearest_fix}")
    return out


def _row(choice: PlacementChoice) -> dict[str, Cell]:
    return {
        "rank": choice.rank,
        "nodes": ", ".join(_places(choice.assignments)),
        "before": choice.fragmentation_before,
        "after": choice.fragmentation_after,
        "stranded": choice.stranded_delta_milligpu / MILLI,
        "blocked": ", ".join(choice.blocked_shapes) or "none",
    }


def _places(assignments: tuple[Assignment, ...]) -> list[str]:
    """ "n1 (H100-80) GPU 0,1", members on the very same devices told once with their number."""
    names = Counter(
        f"{each.node} ({each.gpu_model or 'model unknown'}) "
        + (f"GPU {','.join(map(str, each.gpus))}" if each.gpus else "no GPU")
        for each in assignments
    )
    return [name if count == 1 else f"{count}x {name}" for name, count in names.items()]


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
        }
        for member, each in enumerate(choice.assignments)
    ]
