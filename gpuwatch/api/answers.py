"""What every read endpoint shares: the fresh View or a 503, the ETag of its evaluation, the snapshot's time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from fastapi import Request, Response

from gpuwatch.api.problems import ProblemError
from gpuwatch.daemon.state import DaemonState, View
from gpuwatch.model.evaluation import Evaluation
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.render.plain import time_text


@dataclass(frozen=True, slots=True)
class Known:
    """One view with both halves present; what a read endpoint answers from."""

    view: View
    evaluation: Evaluation
    snapshot: ClusterSnapshot

    @property
    def headers(self) -> dict[str, str]:
        """ETag, time of the snapshot, and that a cache must ask again."""
        return {
            "ETag": f'"{self.evaluation.id}"',
            "X-Snapshot-Time": time_text(self.snapshot.taken_at),
            "X-Evaluation-Id": self.evaluation.id,
            "Cache-Control": "no-cache",
        }


def known(state: DaemonState) -> Known:
    """The current view; ProblemError 503 when there is none yet or it is older than the limit."""
    view = state.view
    wait = max(1, round(state.interval_seconds))
    if view.evaluation is None or view.snapshot is None:
        reasons = list(state.readiness().reasons)
        raise ProblemError(
            503, "not_ready", f"no evaluation yet: {'; '.join(reasons)}", retry_after=wait, reasons=reasons
        )
    if state.is_stale(view):
        age = round(state.age_seconds(view) or 0.0, 1)
        limit = state.settings.max_source_age_seconds
        detail = f"the snapshot is {age:.0f} s old, the limit is {limit} s"
        raise ProblemError(503, "stale", detail, retry_after=wait, age_seconds=age, limit_seconds=limit)
    return Known(view, view.evaluation, view.snapshot)


def answer(request: Request, found: Known, document: dict[str, Any]) -> Response:
    """The document as JSON, or 304 when the client has this evaluation already."""
    return not_modified(request, found) or Response(
        json.dumps(document, ensure_ascii=False, allow_nan=False), media_type="application/json", headers=found.headers
    )


def not_modified(request: Request, found: Known) -> Response | None:
    """304 when If-None-Match names the evaluation in `found`, else None."""
    given = request.headers.get("if-none-match", "")
    tags = {tag.strip().removeprefix("W/") for tag in given.split(",")}
    if "*" in tags or f'"{found.evaluation.id}"' in tags:
        return Response(status_code=304, headers=found.headers)
    return None


@cache
def evaluation_adapter() -> Any:
    """The one pydantic adapter that writes a whole Evaluation."""
    from pydantic import TypeAdapter

    return TypeAdapter(Evaluation)
