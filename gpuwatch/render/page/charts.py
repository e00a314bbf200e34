"""Bars and lines as plain HTML and inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from gpuwatch.model.evaluation import Forecast, FragmentationScope, Waterfall
from gpuwatch.model.history import DemandSeries
from gpuwatch.render.page.html import Markup, tag

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 300.0, 110.0, 30.0, 16.0, 6.0
_PAST_HOURS = 48

Point = tuple[float, float]

# class -> words, in the order in which a bar is drawn
KEY = {
    "active": "active",
    "idle": "idle-held",
    "unknown": "activity unknown",
    "free": "free",
    "stranded": "free but stranded",
    "blocked": "blocked",
}


def bar(parts: Sequence[tuple[str, float]], whole: float) -> Markup:
    """One bar of `whole` units; each part is (class, units). Nothing is drawn beyond the whole."""
    drawn = [
        tag("i", class_=name, style=f"width:{100 * units / whole:.3f}%", title=KEY.get(name, name))
        for name, units in parts
        if whole > 0 and units > 0
    ]
    return tag("div", drawn, class_="bar")


def composition(counted: Waterfall, scope: FragmentationScope | None) -> Markup:
    """Where every installed device of one scope is now."""
    stranded = min(scope.stranded_milligpu, counted.free_milligpu) if scope else 0.0
    return bar(
        [
            ("active", counted.active_milligpu),
            ("idle", counted.idle_held_milligpu),
            ("unknown", counted.activity_unknown_milligpu),
            ("stranded", stranded),
            ("free", counted.free_milligpu - stranded),
            ("blocked", counted.installed_milligpu - counted.schedulable_milligpu),
        ],
        counted.installed_milligpu,
    )


def legend(*names: str) -> Markup:
    """The key of a bar's colors; all of them when none is named."""
    return tag("div", [tag("span", [tag("i", class_=name), KEY[name]]) for name in names or KEY], class_="key")


def demand_chart(forecast: Forecast, past: DemandSeries | None, taken_at: datetime) -> Markup:
    """The last two days of demand, then the mean ahead inside its intervals."""
    before = _past(past, taken_at)
    ahead = [((step.at - taken_at).total_seconds() / 3600, step.mean_gpus) for step in forecast.steps]
    levels = sorted({level for step in forecast.steps for level in step.intervals}, key=float, reverse=True)
    ends = [end for step in forecast.steps for pair in step.intervals.values() for end in pair]
    hours = [x for run in before for x, _ in run] + [x for x, _ in ahead]
    top = max([y for run in before for _, y in run] + [y for _, y in ahead] + ends + [1.0])
    if not hours:
        return Markup("")
    first, last = min(hours), max(max(hours), min(hours) + 1)

    def at(x: float, y: float) -> str:
        across = _LEFT + (x - first) / (last - first) * (_WIDTH - _LEFT)
        return f"{across:.1f},{_TOP + (1 - y / top) * (_HEIGHT - _TOP - _BOTTOM):.1f}"

    def band(at_: int, level: str) -> Markup:
        steps = [
            (x, step.intervals[level])
            for (x, _), step in zip(ahead, forecast.steps, strict=True)
            if level in step.intervals
        ]
        around = [at(x, high) for x, (_, high) in steps] + [at(x, low) for x, (low, _) in reversed(steps)]
        return tag("polygon", points=" ".join(around), class_=f"b{min(at_, 1)}")

    def line(points: Sequence[Point], name: str) -> Markup:
        return tag("polyline", points=" ".join(at(x, y) for x, y in points), class_=name)

    base = _HEIGHT - _BOTTOM
    drawn = [
        tag("line", x1=_LEFT, x2=_WIDTH, y1=base, y2=base, class_="axis"),
        *(band(i, level) for i, level in enumerate(levels)),
        *(line(run, "past") for run in before),
        line(ahead, "mean"),
        tag("text", f"{top:.0f}", x=_LEFT - 5, y=_TOP + 8, text_anchor="end"),
        tag("text", "0", x=_LEFT - 5, y=base, text_anchor="end"),
        tag("text", f"{first:+.0f} h", x=_LEFT, y=_HEIGHT - 3),
        tag("text", f"{last:+.0f} h", x=_WIDTH, y=_HEIGHT - 3, text_anchor="end"),
    ]
    label = f"Demand of pool {forecast.pool}, kind {forecast.kind}, in GPUs"
    return tag("svg", drawn, viewBox=f"0 0 {_WIDTH:.0f} {_HEIGHT:.0f}", role="img", aria_label=label)


def _past(series: DemandSeries | None, taken_at: datetime) -> list[list[Point]]:
    """Runs of observed hours: a gap breaks the line instead of being bridged."""
    runs: list[list[Point]] = [[]]
    for step, gpus in enumerate(series.values if series else ()):
        assert series is not None
        hour = ((series.start_at - taken_at).total_seconds() + (step + 0.5) * series.step_seconds) / 3600
        if gpus is None:
            runs.append([])
        elif -_PAST_HOURS <= hour <= 0:
            runs[-1].append((hour, gpus))
    return [run for run in runs if run]
