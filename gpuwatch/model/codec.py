"""Snapshots as JSON text: strict reading with the path and line of every fault, exact round trip, JSON Schema.

Reading needs pydantic (extras `cli` and `analytics`); it is imported on first use so that the model stays free of it.
"""

from __future__ import annotations

import json
import re
from functools import cache
from json.decoder import scanstring  # type: ignore[attr-defined]  # public since json exists, not in typeshed
from pathlib import Path
from typing import Any

from gpuwatch.errors import InputError, MissingExtraError
from gpuwatch.model.bounds import Location, faults
from gpuwatch.model.snapshot import SNAPSHOT_SCHEMA, ClusterSnapshot

_MAX_FAULTS_SHOWN = 5
_RECORD = "write one with: gpuwatch snapshot record"
_SPACE = re.compile(r"[ \t\n\r]*")
_SCALAR = re.compile(r"[^,\]}\s]+")


@cache
def _adapter() -> Any:
    try:
        from pydantic import TypeAdapter
    except ModuleNotFoundError as err:
        raise MissingExtraError(
            "reading snapshots needs pydantic", todo="pip install 'gpuwatch-stack[cli]' (or [analytics])"
        ) from err
    return TypeAdapter(ClusterSnapshot)


def dump_snapshot(snapshot: ClusterSnapshot) -> str:
    """The snapshot as indented JSON ending in a newline. load_snapshot(dump_snapshot(s)) == s."""
    text: str = _adapter().dump_json(snapshot, indent=1).decode()
    return text + "\n"


def load_snapshot(text: str, origin: str = "snapshot") -> ClusterSnapshot:
    """Reads a snapshot strictly. InputError names origin, JSON path, line and fault of the first few faults."""
    from pydantic import ValidationError

    try:
        head = json.loads(text)
    except RecursionError as err:
        raise InputError(f"{origin} is no snapshot: it is nested too deep", todo=_RECORD) from err
    except ValueError as err:
        where = f"line {err.lineno}: {err.msg}" if isinstance(err, json.JSONDecodeError) else str(err)
        raise InputError(f"{origin} is not JSON ({where})", todo=_RECORD) from err
    version = head.get("schema_version") if isinstance(head, dict) else None
    if version != SNAPSHOT_SCHEMA:
        raise InputError(
            f"{origin} is not a {SNAPSHOT_SCHEMA} document (schema_version is {version!r})",
            todo="record it again with this release: gpuwatch snapshot record",
        )
    try:
        snapshot: ClusterSnapshot = _adapter().validate_json(text)
    except ValidationError as err:
        found = [(each["loc"], each["msg"]) for each in err.errors(include_url=False, include_input=False)]
        raise _told(found, text, origin) from err
    if impossible := list(faults(snapshot)):
        raise _told(impossible, text, origin)
    _check_identity(snapshot, origin)
    return snapshot


def read_snapshot(path: Path) -> ClusterSnapshot:
    """load_snapshot of a file; a file that cannot be read is an InputError too."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors put a mark before the text
    except (OSError, UnicodeDecodeError) as err:
        raise InputError(f"cannot read {path}: {err}", todo="check the path and its permissions") from err
    return load_snapshot(text, origin=str(path))


def snapshot_json_schema() -> str:
    """The JSON Schema of a snapshot document, as indented JSON with sorted keys."""
    schema = _adapter().json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["required"] = sorted({*schema.get("required", []), "schema_version"})
    return json.dumps(schema, indent=1, sort_keys=True) + "\n"


def _check_identity(snapshot: ClusterSnapshot, origin: str) -> None:
    """Names that must be unique are: a doubled node or job would be counted twice everywhere."""
    for what, names in (
        ("node name", [node.name for node in snapshot.nodes]),
        ("job id", [job.id for job in snapshot.jobs]),
        *((f"gpu index on node {n.name}", [str(g.index) for g in n.gpus]) for n in snapshot.nodes),
    ):
        if len(set(names)) != len(names):
            seen: set[str] = set()
            doubled = next(n for n in names if n in seen or seen.add(n))  # type: ignore[func-returns-value]
            raise InputError(f"{origin}: {what} {doubled!r} occurs twice", todo="remove or rename one of them")


def _told(found: list[tuple[Location, str]], text: str, origin: str) -> InputError:
    lines = [f"{origin} has {len(found)} fault(s)"]
    lines += [f"  line {line_of(text, loc)}, {_path(loc)}: {told}" for loc, told in found[:_MAX_FAULTS_SHOWN]]
    if len(found) > _MAX_FAULTS_SHOWN:
        lines.append(f"  and {len(found) - _MAX_FAULTS_SHOWN} more")
    return InputError("\n".join(lines), todo="mend the lines named above, or record it again")


def _path(loc: Location) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in loc)


def line_of(text: str, loc: Location) -> int:
    """1-based line of the value at `loc` in valid JSON `text`; of its nearest existing parent when it is missing."""
    at = _skip(text, 0)
    for step in loc:
        found = _child(text, at, step)
        if found is None:
            break
        at = found
    return text.count("\n", 0, at) + 1


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _child(text: str, at: int, step: int | str) -> int | None:
    """Start of the member `step` of the container that starts at `at`; None when there is none."""
    opening = text[at] if at < len(text) else ""
    if opening not in "[{" or (opening == "[") != isinstance(step, int):
        return None
    at, count = _skip(text, at + 1), 0
    while at < len(text) and text[at] not in "]}":
        key: int | str = count
        if opening == "{":
            key, at = scanstring(text, at + 1, True)
            at = _skip(text, _skip(text, at) + 1)
        if key == step:
            return at
        at = _skip(text, _end(text, at))
        if at < len(text) and text[at] == ",":
            at = _skip(text, at + 1)
        count += 1
    return None


def _end(text: str, at: int) -> int:
    """End of the JSON value that starts at `at`."""
    if text[at] == '"':
        return int(scanstring(text, at + 1, True)[1])
    if text[at] not in "[{":
        match = _SCALAR.match(text, at)
        return match.end() if match else at + 1
    depth = 0
    while at < len(text):
        char = text[at]
        if char == '"':
            at = scanstring(text, at + 1, True)[1]
            continue
        depth += (char in "[{") - (char in "]}")
        at += 1
        if depth == 0:
            break
    return at
