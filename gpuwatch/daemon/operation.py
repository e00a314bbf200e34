"""What the daemon tells of itself, taken from one View, for metrics and the page."""

from __future__ import annotations

import gpuwatch
from gpuwatch.daemon.state import DaemonState, View
from gpuwatch.render.metrics import Operation


def operation(state: DaemonState, view: View) -> Operation:
    """The daemon's own facts as of `view` and now."""
    return Operation(
        now=state.now(),
        sources=view.sources,
        store_ok=view.store_ok,
        findings=view.findings,
        stage_seconds=view.stage_seconds,
        stage_failures=view.stage_failures,
        evaluations=view.evaluations,
        ready=state.readiness().ready,
        version=gpuwatch.__version__,
    )
