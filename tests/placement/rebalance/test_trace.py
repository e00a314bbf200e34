"""The plan for the published end state of best_fit: 5% of the jobs moved allocate what fgd would have."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpuwatch.engine import rebalance
from gpuwatch.fit.booking import book
from gpuwatch.model.plan import PlanLimits
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.placement.arrivals import place_stream
from gpuwatch.placement.rebalance.apply import apply_steps, undo_steps
from gpuwatch.placement.rebalance.world import check_plan
from gpuwatch.placement.replay import field_of, inflated, node_order
from gpuwatch.traces.openb import read_openb
from gpuwatch.traces.trace_format import empty_snapshot

PUBLISHED_FGD_PERCENT = 95.39


@pytest.mark.traces
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_best_fit_with_moves_allocates_what_fgd_does(traces: Path) -> None:
    field = field_of(read_openb(traces / "openb"))
    empty = empty_snapshot(field.trace)
    nodes = tuple(empty.nodes[at] for at in np.argsort(node_order(field, 42)).tolist())
    state = place_stream(replace(empty, nodes=nodes), inflated(field, 42, 1.3), "best_fit")
    started = time.process_time()
    plan = rebalance(state, PlanLimits(include_cpu_jobs=True), AnalysisSettings(), "id")
    seconds = time.process_time() - started
    after = apply_steps(state, plan.steps)
    allocated = sum(job.shape.milligpu for job in after.jobs if job.phase == "running")
    assert 100 * allocated / field.capacity_milligpu >= PUBLISHED_FGD_PERCENT
    assert plan.moves <= 0.05 * plan.running_jobs
    assert book(after).findings == ()
    assert check_plan(plan, state).valid
    assert undo_steps(after, plan, plan.steps) == state
    assert seconds < 60  # about 10 on a common machine
