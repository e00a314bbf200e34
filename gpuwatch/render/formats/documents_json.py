"""The document as JSON: indented, or one item a line."""

from __future__ import annotations

import json
import re
from typing import Any

from gpuwatch.render.report import FORMATS, Report, Style

# JSON escapes the lower control characters itself; these others could still redraw a terminal or turn text around.
_UNSEEN = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


@FORMATS.register("json")
def render_json(report: Report, style: Style) -> str:
    """The whole document."""
    return _dumped(report.document, indent=2) + "\n"


@FORMATS.register("jsonl")
def render_jsonl(report: Report, style: Style) -> str:
    """One line per item, each with the evaluation it belongs to; no line when there is none."""
    head: dict[str, Any] = {
        key: report.document[key] for key in ("evaluation_id", "snapshot_taken_at") if key in report.document
    }
    lines = [_dumped({**head, **item}) for item in report.document["items"]]
    return "".join(f"{line}\n" for line in lines)


def _dumped(document: dict[str, Any], indent: int | None = None) -> str:
    text = json.dumps(document, indent=indent, ensure_ascii=False, allow_nan=False)
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
