"""The lead of one policy over another, workload by workload, and the bars that our own policy is held to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from gpuwatch.placement.replay_summary import PolicySummary, Spread, size_order
from gpuwatch.render.report import Column, Lines, Section, Table

LEAST_WINS_RATIO, MOST_BEHIND, MOST_BEHIND_ADMISSION = 14 / 17, 0.1, 1.0
LARGEST = "8"


@dataclass(frozen=True, slots=True)
class Lead:
    """One workload: points by which the policy is ahead."""

    workload: str
    at_100: float
    at_130: float
    admission: dict[str, float]  # by size
    largest: float | None  # admission of 8-GPU jobs against the best published policy; None: there are none
    best: str | None  # that policy


def leads(summaries: Sequence[PolicySummary], policy: str, against: str, published: Sequence[str]) -> list[Lead]:
    """One for each workload that both policies have been run on."""
    by_cell = {(each.workload, each.policy): each for each in summaries}
    out = []
    for workload in dict.fromkeys(each.workload for each in summaries):
        own, other = by_cell.get((workload, policy)), by_cell.get((workload, against))
        if own is None or other is None:
            continue
        rivals = {name: _admission(by_cell[workload, name]) for name in published if (workload, name) in by_cell}
        best = max(
            (name for name in rivals if LARGEST in rivals[name]), key=lambda name: rivals[name][LARGEST], default=None
        )
        mine, theirs = _admission(own), _admission(other)
        out.append(
            Lead(
                workload=workload,
                at_100=_mean(own.allocation_ratio_at_100) - _mean(other.allocation_ratio_at_100),
                at_130=_mean(own.allocation_ratio_at_130) - _mean(other.allocation_ratio_at_130),
                admission={size: mine[size] - theirs[size] for size in sorted(mine, key=size_order) if size in theirs},
                largest=mine[LARGEST] - rivals[best][LARGEST] if best is not None and LARGEST in mine else None,
                best=best,
            )
        )
    return out


def verdicts(found: Sequence[Lead]) -> list[tuple[str, bool]]:
    """Each bar in words, and whether it is met."""
    wins = sum(each.at_100 > 0 and each.at_130 > 0 for each in found)
    needed = round(LEAST_WINS_RATIO * len(found))
    lowest = min(min(each.at_100, each.at_130) for each in found)
    mean_100, mean_130 = fmean(each.at_100 for each in found), fmean(each.at_130 for each in found)
    behind = min((each.largest for each in found if each.largest is not None), default=0.0)
    return [
        (f"ahead at 100% and at 130% on {wins} of {len(found)} workloads (bar {needed})", wins >= needed),
        (
            f"mean of all: {mean_100:+.2f} points at 100%, {mean_130:+.2f} at 130% (bar: above 0)",
            min(mean_100, mean_130) > 0,
        ),
        (f"lowest lead {lowest:+.2f} points (bar {-MOST_BEHIND:g})", lowest >= -MOST_BEHIND),
        (
            f"8-GPU admission against the best published policy: lowest {behind:+.2f} points"
            f" (bar {-MOST_BEHIND_ADMISSION:g})",
            behind >= -MOST_BEHIND_ADMISSION,
        ),
    ]


def lead_sections(
    summaries: Sequence[PolicySummary], policy: str, against: str, published: Sequence[str]
) -> tuple[tuple[Section, ...], bool]:
    """What is printed of the lead of `policy` over `against`, and whether every bar is met."""
    found = leads(summaries, policy, against, published)
    sizes = sorted({size for each in found for size in each.admission}, key=size_order)
    rows = [
        {
            "workload": each.workload,
            "at_100": each.at_100,
            "at_130": each.at_130,
            **{f"size_{size}": points for size, points in each.admission.items()},
            "largest": each.largest,
            "best": each.best,
        }
        for each in found
    ]
    columns = (
        Column("workload", "Workload"),
        Column("at_100", "Allocated at 100", "points", digits=2),
        Column("at_130", "at 130", "points", digits=2),
        *(Column(f"size_{size}", f"Admitted {size}", "points", digits=1) for size in sizes),
        Column("largest", f"{LARGEST} against the best", "points", digits=1),
        Column("best", "which is"),
    )
    judged = verdicts(found)
    sections = (
        Table(title=f"{policy} minus {against}, means over seeds", columns=columns, rows=tuple(rows)),
        Lines(title="", lines=tuple(f"{'met   ' if met else 'MISSED'} {told}" for told, met in judged)),
    )
    return sections, all(met for _, met in judged)


def _admission(summary: PolicySummary) -> dict[str, float]:
    return {each.size: 100 * each.ratio.mean for each in summary.admission if each.ratio}


def _mean(measured: Spread | None) -> float:
    if measured is None:
        raise SystemExit("a run ends before the point that is compared: replay with the published inflation")
    return 100 * measured.mean
