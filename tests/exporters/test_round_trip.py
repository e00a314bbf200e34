"""A snapshot that is replayed, scraped and assembled again counts the same GPUs in every state, pool and model."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from gpuwatch_exporters.replay.trace_world import TraceWorld

from gpuwatch.assemble.snapshot import assemble
from gpuwatch.counting.waterfall import waterfalls
from gpuwatch.dialects.dialect import observe
from gpuwatch.fit.booking import book
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.snapshot import ClusterSnapshot
from tests.exporters.worlds import NOW, generated, replay_of, scrape

# Activity needs a window of samples; one scrape has none, so those states are left out of the comparison.
STATES = ("installed_milligpu", "healthy_milligpu", "schedulable_milligpu", "allocated_milligpu", "free_milligpu")


def counts(snapshot: ClusterSnapshot) -> dict:
    overall, scopes = waterfalls(book(snapshot), snapshot.taken_at, AnalysisSettings())
    return {(w.pool, w.gpu_model): {state: getattr(w, state) for state in STATES} for w in (overall, *scopes)}


@pytest.mark.parametrize("names", ["old", "new"])
@pytest.mark.parametrize("minutes", [0, 47])
def test_the_generated_cluster_comes_back_with_equal_counts(names: str, minutes: int) -> None:
    at = NOW + timedelta(minutes=minutes)
    replay = generated(at=at, names=names)
    original = replay.frame.snapshot
    again = assemble(observe(scrape(replay)), cluster="demo", taken_at=at)
    assert counts(again) == counts(original)
    wanted = {job.shape.gpus for job in original.jobs if job.phase == "pending"}
    assert {job.shape.gpus for job in again.jobs if job.phase == "pending"} == wanted
    assert sum(job.phase == "gated" for job in again.jobs) == sum(job.phase == "gated" for job in original.jobs)
    assert not book(again).findings


def test_free_gpus_per_node_come_back_exactly() -> None:
    replay = generated()
    original = book(replay.frame.snapshot)
    again = book(assemble(observe(scrape(replay)), cluster="demo", taken_at=NOW))
    for name, node in original.nodes.items():
        twin = again.nodes[name]
        assert sorted(twin.free_milligpu) == sorted(node.free_milligpu), name
        assert twin.cpu_free_millicores == node.cpu_free_millicores, name
        assert twin.memory_free_bytes == node.memory_free_bytes, name
        assert twin.node.pool == node.node.pool
        assert twin.node.block_causes == node.node.block_causes


@pytest.mark.traces
@pytest.mark.slow
def test_the_public_trace_comes_back_with_equal_counts(traces: Path) -> None:
    replay = replay_of(TraceWorld(NOW, traces / "openb", load=0.8))
    original = replay.frame.snapshot
    assert len(original.nodes) == 1213
    again = assemble(observe(scrape(replay)), cluster="openb", taken_at=NOW)
    assert not book(again).findings
    by_pool = {key: value for key, value in counts(original).items() if key[1] is None}
    assert {key: value for key, value in counts(again).items() if key[1] is None} == by_pool
