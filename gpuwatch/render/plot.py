"""A plot as inline SVG: lines over one axis, told apart by color and dash, named in a key."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gpuwatch.render.page.html import Content, Markup, tag
from gpuwatch.render.report import Curve, Plot
from gpuwatch.render.text import number

_WIDTH, _HEIGHT = 720.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 40.0, 150.0, 8.0, 34.0  # the key stands to the right
_KEY_STEP = 17
# Seen on light and on dark, and told apart by most who do not see all colors; a second round of them is dashed.
_COLORS = ("#3b82c4", "#d1762a", "#2f9e77", "#b0569f", "#8a8a2b", "#c9504a", "#6b7fd7")
_DASHES = (None, "6 3", "2 3")
# Within the picture, so that a page without one has no rule for it.
_STYLE = "display:block;width:100%;max-width:46rem;height:auto;fill:currentColor;font-size:11px"


def drawn(plot: Plot) -> Markup:
    """The plot as one <svg>; nothing when it has no point."""
    zoomed = _from(plot.curves, plot.draw_from)
    places = _places(zoomed)
    curves = zoomed if places else plot.curves  # nothing so far to the right: all of it
    places = places or _places(curves)
    if not places:
        return Markup("")
    scale = _Scale(places, 0.0 if curves is plot.curves else min(y for _, y in places))
    lines = [_line(curve, at, scale) for at, curve in enumerate(curves)]
    key = [_key(curve, at) for at, curve in enumerate(curves)]
    label = f"{plot.title}, in {plot.y_unit}, over {plot.x_title}"
    parts: list[Content] = [*_axes(plot, scale), *lines, *key]
    return tag("svg", parts, viewBox=f"0 0 {_WIDTH:.0f} {_HEIGHT:.0f}", role="img", style=_STYLE, aria_label=label)


def _from(curves: tuple[Curve, ...], x_from: float | None) -> tuple[Curve, ...]:
    if x_from is None:
        return curves
    return tuple(Curve(each.label, tuple((x, y) for x, y in each.points if x >= x_from)) for each in curves)


def _places(curves: tuple[Curve, ...]) -> list[tuple[float, float]]:
    return [(x, y) for curve in curves for x, y in curve.points if y is not None]


class _Scale:
    """From values to places in the picture."""

    def __init__(self, places: list[tuple[float, float]], lowest: float) -> None:
        self.first, last = min(x for x, _ in places), max(x for x, _ in places)
        self.last = max(last, self.first + 1)
        top = max(y for _, y in places)
        self.step_x, self.step_y = _step(self.last - self.first), _step(top - lowest)
        self.base = self.step_y * math.floor(lowest / self.step_y + 1e-9)
        self.top = max(self.step_y * math.ceil(top / self.step_y - 1e-9), self.base + self.step_y)

    def x(self, value: float) -> float:
        return _LEFT + (value - self.first) / (self.last - self.first) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return _TOP + (1 - (value - self.base) / (self.top - self.base)) * (_HEIGHT - _TOP - _BOTTOM)


def _step(span: float) -> float:
    """A round distance that divides `span` into about six."""
    if span <= 0:
        return 1.0
    rough = span / 7
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)


def _axes(plot: Plot, scale: _Scale) -> Iterator[Markup]:
    right, base = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    for at in range(round((scale.top - scale.base) / scale.step_y) + 1):
        value = scale.base + at * scale.step_y
        y = scale.y(value)
        yield tag("line", x1=_LEFT, x2=right, y1=f"{y:.1f}", y2=f"{y:.1f}", stroke="#8884")
        yield tag("text", number(value), x=_LEFT - 6, y=f"{y + 4:.1f}", text_anchor="end")
    for at in range(math.ceil(scale.first / scale.step_x), math.floor(scale.last / scale.step_x) + 1):
        place = at * scale.step_x
        yield tag("text", number(place), x=f"{scale.x(place):.1f}", y=base + 15, text_anchor="middle")
    yield tag("text", plot.x_title, x=f"{(_LEFT + right) / 2:.1f}", y=_HEIGHT - 4, text_anchor="middle")


def _line(curve: Curve, at: int, scale: _Scale) -> list[Markup]:
    runs: list[list[str]] = [[]]
    for x, y in curve.points:
        if y is None:
            runs.append([])
        else:
            runs[-1].append(f"{scale.x(x):.1f},{scale.y(y):.1f}")
    return [tag("polyline", points=" ".join(run), **_look(at)) for run in runs if run]


def _key(curve: Curve, at: int) -> list[Markup]:
    y, left = _TOP + 8 + _KEY_STEP * at, _WIDTH - _RIGHT + 12
    stroke = tag("polyline", points=f"{left},{y} {left + 20},{y}", **_look(at))
    return [stroke, tag("text", curve.label, x=left + 26, y=y + 4)]


def _look(at: int) -> dict[str, str | None]:
    dash = _DASHES[at // len(_COLORS) % len(_DASHES)]
    return {"fill": "none", "stroke_width": "1.7", "stroke": _COLORS[at % len(_COLORS)], "stroke_dasharray": dash}
