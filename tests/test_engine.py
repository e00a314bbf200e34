"""One evaluation: equal for equal input, whole on odd input, and standing when one of its stages breaks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from gpuwatch import engine
from gpuwatch.advice.rule import RULES
from gpuwatch.errors import InputError
from gpuwatch.model.cluster import Node
from gpuwatch.model.history import History
from gpuwatch.model.placement import PlacementRequest
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.simulate.cluster import simulate
from tests.builders import NOW, a_gpu, a_job, a_node, a_shape, a_snapshot, busy, idle
from tests.processes import printed

SETTINGS = AnalysisSettings()
OLD = NOW - timedelta(days=3)


def evaluated(snapshot: ClusterSnapshot, history: History | None = None, settings: AnalysisSettings = SETTINGS):
    return engine.evaluate(snapshot, history or History(), settings)


def test_equal_input_gives_an_equal_evaluation() -> None:
    world = simulate(seed=3, taken_at=NOW)
    first, second = (evaluated(world.snapshot, world.history) for _ in range(2))
    assert first == second
    assert first.failures == ()
    assert len(first.id) == 12


def test_the_id_is_the_same_in_another_process() -> None:
    code = (
        "from gpuwatch import engine; from gpuwatch.simulate.cluster import simulate; from tests.builders import NOW;"
        "from gpuwatch.model.settings import AnalysisSettings; w = simulate(seed=3, taken_at=NOW);"
        "print(engine.evaluation_id(w.snapshot, w.history, AnalysisSettings()))"
    )
    ids = {printed(code, PYTHONHASHSEED=seed) for seed in ("1", "2")}
    assert len(ids) == 1


def test_any_change_of_input_changes_the_id() -> None:
    world = simulate(seed=3, taken_at=NOW)
    base = engine.evaluation_id(world.snapshot, world.history, SETTINGS)
    assert engine.evaluation_id(world.snapshot, History(), SETTINGS) != base
    assert engine.evaluation_id(world.snapshot, world.history, replace(SETTINGS, idle_peak_ratio=0.02)) != base
    later = replace(world.snapshot, taken_at=NOW + timedelta(seconds=1))
    assert engine.evaluation_id(later, world.history, SETTINGS) != base


@pytest.mark.parametrize(
    "snapshot",
    [
        a_snapshot(),
        a_snapshot(Node(name="cpu-only", cpu_allocatable_millicores=64_000)),
        a_snapshot(a_node("n", 0), jobs=[a_job("waits", shape=a_shape(8))]),
    ],
    ids=["empty", "without GPUs", "a job waits for GPUs that do not exist"],
)
def test_clusters_without_gpus(snapshot: ClusterSnapshot) -> None:
    found = evaluated(snapshot)
    assert found.failures == ()
    assert found.waterfall is not None
    assert found.waterfall.installed_milligpu == 0
    assert found.fragmentation is not None
    assert found.fragmentation.overall.fragmentation_index is None
    assert found.fragmentation.overall.reason
    assert found.recommendations == ()


def test_nothing_free_has_no_index() -> None:
    node = a_node("n", 2)
    found = evaluated(a_snapshot(node, jobs=[a_job("j", "n", [0, 1])]))
    assert found.waterfall is not None
    assert found.waterfall.free_milligpu == 0
    assert found.fragmentation is not None
    assert found.fragmentation.overall.fragmentation_index is None


def test_odd_bookings_are_findings_and_counts_stay_whole() -> None:
    jobs = [
        a_job("nowhere", "gone", [0]),
        a_job("first", "n", [0, 1]),
        a_job("second", "n", [1]),
        a_job("third", "n", shape=a_shape(4)),
    ]
    found = evaluated(a_snapshot(a_node("n", 2), jobs=jobs))
    assert {"unknown_node", "over_allocated"} <= {finding.code for finding in found.findings}
    assert found.waterfall is not None
    assert found.waterfall.allocated_milligpu == 2_000
    assert found.failures == ()


def test_a_broken_stage_is_named_and_the_others_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise InputError("the mix is odd", code="odd_mix")

    monkeypatch.setattr(engine, "forecast_all", broken)
    seen: list[str] = []
    world = simulate(seed=3, taken_at=NOW)
    found = engine.evaluate(world.snapshot, world.history, SETTINGS, observe=lambda stage, seconds: seen.append(stage))
    assert [(f.stage, f.code, f.detail) for f in found.failures] == [("forecast", "odd_mix", "the mix is odd")]
    assert found.forecasts == ()
    assert found.waterfall is not None
    assert found.recommendations
    assert tuple(seen) == engine.STAGES


def test_a_broken_rule_is_named_among_the_failures_and_the_others_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OverflowError("date value out of range")

    monkeypatch.setattr(type(RULES.get("idle_held")), "run", broken)
    found = evaluated(simulate(seed=7, taken_at=NOW).snapshot)
    assert [(f.stage, f.code, f.detail) for f in found.failures] == [
        ("advice", "rule_failed", "idle_held: OverflowError: date value out of range")
    ]
    assert {r.rule for r in found.recommendations} == {"tier_mismatch", "consolidate", "mig_repartition"}


def test_the_planted_cases_are_found() -> None:
    world = simulate(seed=7, taken_at=NOW)
    found = evaluated(world.snapshot, world.history)
    assert {r.rule for r in found.recommendations} == {"idle_held", "tier_mismatch", "consolidate", "mig_repartition"}
    for item in found.recommendations:
        assert item.evidence
        assert item.commands
        assert all(command.undo for command in item.commands)
        assert item.recoverable.cost is not None or item.recoverable.missing


def test_unknown_is_never_idle() -> None:
    silent = a_node("silent", [a_gpu(0), a_gpu(1)])
    told = a_node("told", [a_gpu(0, activity=idle()), a_gpu(1, activity=busy())])
    jobs = [
        a_job("silent", "silent", [0, 1], started_at=OLD),
        a_job("idle", "told", [0], started_at=OLD),
        a_job("busy", "told", [1], started_at=OLD),
    ]
    found = evaluated(a_snapshot(silent, told, jobs=jobs))
    assert found.waterfall is not None
    assert found.waterfall.idle_held_milligpu == 1_000
    assert found.waterfall.activity_unknown_milligpu == 2_000
    assert {r.subject.name for r in found.recommendations if r.rule == "idle_held"} == {"ml/idle"}


def test_a_placement_refers_to_its_evaluation() -> None:
    snapshot = a_snapshot(a_node("n", 8))
    advice = engine.place(snapshot, PlacementRequest(shape=a_shape(8)), SETTINGS, "abc")
    assert advice.evaluation_id == "abc"
    assert advice.feasible
    assert advice.choices[0].assignments[0].node == "n"


def test_who_asks_often_gets_what_one_gets_who_asks_once() -> None:
    first, second = a_snapshot(a_node("n", 8)), a_snapshot(a_node("m", 4, model="T4"))
    ask = engine.Placements()
    requests = [PlacementRequest(shape=a_shape(n), members=m) for n, m in ((1, 1), (2, 3), (8, 1), (4, 2))]
    for snapshot in (first, second, first):
        for request in requests:
            assert ask(snapshot, request, SETTINGS, "abc") == engine.place(snapshot, request, SETTINGS, "abc")


def test_many_may_ask_at_once() -> None:
    snapshot = a_snapshot(*(a_node(f"n{i}", 8, model=model) for i, model in enumerate(("T4", "B200", "H100-80"))))
    requests = [PlacementRequest(shape=a_shape(1 + at % 4, cpu=at), gpu_memory_bytes=1 + at) for at in range(200)]
    wanted = [engine.place(snapshot, request, SETTINGS, "abc") for request in requests]
    ask = engine.Placements()
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda request: ask(snapshot, request, SETTINGS, "abc"), requests))
    assert found == wanted
