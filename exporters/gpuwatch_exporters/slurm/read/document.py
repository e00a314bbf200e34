"""A JSON answer read row by row: the list of jobs may be tens of megabytes, and as Python objects ten times that."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from typing import Any

from gpuwatch_exporters.slurm.read.fields import find, text

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODE = json.JSONDecoder().raw_decode


class Document:
    """One answer, an object. `rows(key)` gives the elements of the list at `key` one at a time; once it is read to its
    end, `found` tells whether there was such a list, and `rest` holds everything else. ValueError: it is no JSON."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.rest: dict[str, Any] = {}
        self.found = False

    def rows(self, key: str) -> Iterator[Any]:
        at = self._after("{", self._skip(0))
        if self._peek(at) == "}":
            return
        while True:
            name, at = _DECODE(self._text, at)
            if not isinstance(name, str):
                raise ValueError(f"a name is missing before character {at}")
            at = self._after(":", self._skip(at))
            if name == key and self._peek(at) == "[":
                self.found = True
                at = yield from self._elements(at + 1)
            else:
                self.rest[name], at = _DECODE(self._text, at)
            at = self._skip(at)
            if self._peek(at) == "}":
                self._text = ""  # the caller keeps the document for its `rest`; megabytes of text need not stay
                return
            at = self._after(",", at)

    def _elements(self, at: int) -> Generator[Any, None, int]:
        at = self._skip(at)
        while self._peek(at) != "]":
            element, at = _DECODE(self._text, at)
            yield element
            at = self._skip(at)
            if self._peek(at) == ",":
                at = self._after(",", at)
            elif self._peek(at) != "]":
                raise ValueError(f"neither comma nor end of list at character {at}")
        return at + 1

    def _peek(self, at: int) -> str:
        return self._text[at : at + 1]

    def _after(self, mark: str, at: int) -> int:
        if self._peek(at) != mark:
            raise ValueError(f"{mark!r} is missing at character {at}")
        return self._skip(at + 1)

    def _skip(self, at: int) -> int:
        found = _SPACE.match(self._text, at)
        return found.end() if found else at


def release(rest: dict[str, Any]) -> tuple[str, str, str]:
    """(schema, Slurm's release, cluster) as the answer's `meta` tells them; "" for what it does not."""
    schema = text(find(rest, "meta/plugin/data_parser", "meta/plugin/type"))
    found = re.search(r"v\d+\.\d+\.\d+", schema)
    told, cluster = (text(find(rest, f"meta/slurm/{key}", f"meta/Slurm/{key}")) for key in ("release", "cluster"))
    return found[0] if found else "", told, cluster


def told_errors(rest: dict[str, Any]) -> list[str]:
    """The errors that the answer itself tells."""
    out = []
    errors = rest.get("errors") or []
    for each in errors if isinstance(errors, list) else [errors]:
        told = (
            [str(each.get(key)) for key in ("description", "error") if each.get(key)] if isinstance(each, dict) else []
        )
        out.append(": ".join(told) or str(each))
    return out
