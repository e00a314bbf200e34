"""HTML that is safe by type: text is made visible and escaped unless it is already Markup."""

from __future__ import annotations

import html
from collections.abc import Iterable

from gpuwatch.render.text import clean


class Markup(str):
    """Text that is HTML already. Only this module and literals in the page's own code make it."""

    __slots__ = ()


Content = Markup | str | int | float | None | Iterable["Content"]


def render(content: Content) -> Markup:
    """Anything as HTML: strings on one line, all visible, and escaped; None as nothing, iterables joined."""
    if content is None:
        return Markup("")
    if isinstance(content, Markup):
        return content
    if isinstance(content, str | int | float):
        return Markup(_safe(content))
    return Markup("".join(render(each) for each in content))


def _safe(text: str | int | float) -> str:
    return html.escape(clean(str(text)), quote=True)


def tag(name: str, content: Content = None, /, **attributes: str | int | float | None) -> Markup:
    """<name attribute="...">content</name>. `class_` is class, other underscores become dashes; None leaves it out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_safe(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{given}>{render(content)}</{name}>")


def table(head: Iterable[Content], rows: Iterable[Iterable[Content]], *, numbers_from: int = 1) -> Markup:
    """A table in a box that scrolls sideways by itself; columns from `numbers_from` are right-aligned."""

    def cells(kind: str, row: Iterable[Content]) -> list[Markup]:
        return [tag(kind, cell, class_="n" if at >= numbers_from else None) for at, cell in enumerate(row)]

    body = [tag("tr", cells("td", row)) for row in rows]
    whole = tag("table", [tag("thead", tag("tr", cells("th", head))), tag("tbody", body)])
    return tag("div", whole, class_="scroll")
