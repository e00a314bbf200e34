"""The document as JSON: indented, or one item a line."""

from __future__ import annotations

import json

from gpuwatch.render.report import FORMATS, Report, Style


@FORMATS.register("json")
def render_json(report: Report, style: Style) -> str:
    """The whole document."""
    return json.dumps(report.document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


@FORMATS.register("jsonl")
def render_jsonl(report: Report, style: Style) -> str:
    """One line per item, each with the evaluation it belongs to; no line when there is none."""
    head = {key: report.document[key] for key in ("evaluation_id", "snapshot_taken_at") if key in report.document}
    lines = [json.dumps({**head, **item}, ensure_ascii=False, allow_nan=False) for item in report.document["items"]]
    return "".join(f"{line}\n" for line in lines)
