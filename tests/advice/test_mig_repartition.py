"""mig_repartition: advice for jobs that wait for a slice; silence, with its reason, where cutting would not help."""

from __future__ import annotations

import random
from dataclasses import replace

import promql_parser
import pytest

from gpuwatch.advice.rule import RULES
from gpuwatch.fit.booking import book
from gpuwatch.fit.feasible import room, start_all
from gpuwatch.model.snapshot import SourceHealth
from tests.advice.cases import context_of, matches_golden, reasons, run
from tests.builders import a_gpu, a_job, a_node, a_shape, a_snapshot, busy, idle
from tests.placement.mig.clusters import NAMES, a_cut, an_instance, on, random_cut

RULE = "mig_repartition"


def waits(name: str, profile: str, gpus: int = 1, **fields):
    cpu = fields.pop("cpu", 4000)
    return a_job(name, shape=a_shape(gpus, mig_profile=profile, cpu=cpu), **fields)


def a_used_cut():
    """Held 3g at 4, idle 1g at 0 and 1."""
    return a_cut(
        0,
        an_instance(3, "1g.10gb", 0),
        replace(an_instance(4, "1g.10gb", 1), activity=idle()),
        an_instance(5, "3g.40gb", 4),
    )


def test_golden():
    gpu = a_used_cut()
    other = a_cut(0)
    jobs = [
        on("n1", gpu, "5"),
        waits("wants-4g", "4g.40gb", pool="slices"),
        waits("wants-two", "2g.20gb", 2, pool="slices", priority=5),
        waits("learns", "7g.80gb", kind="training"),
    ]
    nodes = [a_node("n1", [gpu], pool="slices"), a_node("n2", [other], pool="slices")]
    outcome = run(RULE, *nodes, jobs=jobs, gpu_hour_price={"default": 2.0})
    matches_golden(RULE, outcome)
    (found,) = outcome.recommendations
    assert (found.subject.kind, found.subject.name) == ("pool", "slices")
    assert found.unlocks == ("ml/wants-4g", "ml/wants-two")
    assert found.facts["wholly_free_gpus_lost"] == 1
    assert found.recoverable.gpus == pytest.approx(8 / 7, abs=1e-3)
    assert found.risk.work_lost_seconds == 0
    assert all(command.undo for command in found.commands)
    assert reasons(outcome) == {"ml/learns": "training"}
    for evidence in found.evidence:
        promql_parser.parse(evidence.query)


def test_idle_instances_in_the_way_are_named_and_deleted_held_ones_never():
    gpu = a_used_cut()
    (found,) = run(RULE, a_node("n1", [gpu]), jobs=[on("n1", gpu, "5"), waits("w", "4g.40gb")]).recommendations
    told = "n1 GPU 0 instance 3 (1g.10gb at 0), n1 GPU 0 instance 4 (1g.10gb at 1)"
    assert found.facts["idle_instances_in_the_way"] == told
    lines = " ".join(command.run for command in found.commands)
    assert "-dgi -gi 3" in lines
    assert "-dgi -gi 5" not in lines
    assert (found.confidence.value, "not measured" in found.confidence.basis) == (0.64, True)
    assert found.subject.gpus == (0,)


def test_a_free_device_is_switched_to_mig_only_when_no_cut_one_does():
    gpu = a_cut(0)
    nodes = a_node("n1", [gpu, a_gpu(1, uuid="GPU-1")])
    (found,) = run(RULE, nodes, jobs=[waits("w", "4g.40gb")]).recommendations
    assert (found.facts["gpus_switched_to_mig"], found.subject.gpus) == (0, (0,))
    (found,) = run(RULE, nodes, jobs=[waits("w", "7g.80gb"), waits("v", "7g.80gb")]).recommendations
    assert (found.facts["gpus_switched_to_mig"], len(found.unlocks)) == (1, 2)


@pytest.mark.parametrize(
    ("jobs", "reason"),
    [
        ([waits("w", "7g.80gb")], "held_instances_block"),
        ([waits("w", "1g.5gb")], "no_room_to_cut"),
        ([waits("w", "4g.40gb", kind="training")], "training"),
        ([waits("w", "4g.40gb", cpu=99_000)], "would_not_start"),
        ([waits("w", "1g.10gb", cpu=99_000)], "slices_stand_free"),
        ([waits("w", "4g.40gb", pool="elsewhere")], "no_room_to_cut"),
    ],
)
def test_why_it_stays_silent(jobs, reason):
    gpu = a_used_cut()
    outcome = run(RULE, a_node("n1", [gpu]), jobs=[on("n1", gpu, "5"), *jobs])
    assert outcome.recommendations == ()
    assert reasons(outcome) == {"ml/w": reason}


def test_held_instances_that_block_are_named():
    gpu = a_used_cut()
    outcome = run(RULE, a_node("n1", [gpu]), jobs=[on("n1", gpu, "5"), waits("w", "7g.80gb")])
    assert "n1 GPU 0: instance 5 (3g.40gb at 4, held by ml/n1-0-5)" in outcome.abstentions[0].detail


def test_a_silent_source_may_hide_a_holder():
    gpu = a_used_cut()
    snapshot = a_snapshot(a_node("n1", [gpu]), jobs=[waits("w", "4g.40gb")])
    silent = replace(snapshot, sources=(SourceHealth(name="prom", kind="prometheus", ok=False, cause="timeout"),))
    outcome = RULES.get(RULE).run(context_of(silent))
    assert (outcome.recommendations, reasons(outcome)) == ((), {"ml/w": "source_silent"})


def test_nothing_is_said_where_nobody_waits_or_can_start_already():
    gpu = a_used_cut()
    for jobs in ([], [waits("w", "1g.10gb")], [a_job("w", shape=a_shape(8))], [waits("w", "4g.40gb", phase="gated")]):
        outcome = run(RULE, a_node("n1", [gpu]), jobs=jobs)
        assert outcome.recommendations == outcome.abstentions == ()


def test_an_instance_at_work_without_a_holder_stays():
    gpu = a_cut(0, replace(an_instance(3, "1g.10gb", 0), activity=busy()))
    outcome = run(RULE, a_node("n1", [gpu]), jobs=[waits("w", "7g.80gb")])
    assert outcome.recommendations == ()
    assert "no holder known, not known to be idle" in outcome.abstentions[0].detail


def test_devices_that_would_let_nobody_start_are_not_cut():
    """CPU for one of the two: the other's device stays as it is."""
    nodes = [a_node("n1", [a_cut(0)]), a_node("n2", [a_cut(0)], cpu_allocatable_millicores=1000)]
    outcome = run(RULE, *nodes, jobs=[waits("w", "7g.80gb"), waits("v", "7g.80gb")])
    (found,) = outcome.recommendations
    assert (found.facts["gpus_repartitioned"], found.subject.node, found.recoverable.gpus) == (1, "n1", 1.0)
    assert set(reasons(outcome).values()) == {"would_not_start"}


def test_pools_are_advised_apart():
    nodes = [a_node("n1", [a_cut(0)], pool="a"), a_node("n2", [a_cut(0)], pool="b")]
    jobs = [waits("w", "7g.80gb", pool="a"), waits("v", "7g.80gb", pool="b")]
    found = run(RULE, *nodes, jobs=jobs).recommendations
    assert [(one.subject.name, one.unlocks) for one in found] == [("a", ("ml/w",)), ("b", ("ml/v",))]
    assert len({one.id for one in found}) == 2


@pytest.mark.parametrize("seed", range(25))
def test_who_is_said_to_start_cannot_now_and_can_afterwards(seed):
    rng = random.Random(seed)
    snapshot, _ = random_cut(rng, rng.randint(1, 4))
    asks = [waits(f"w{at}", NAMES[rng.choice(list(NAMES))], rng.choice((1, 1, 2))) for at in range(rng.randint(1, 4))]
    snapshot = replace(snapshot, jobs=(*snapshot.jobs, *asks))
    context = context_of(snapshot)
    outcome = RULES.get(RULE).run(context)
    rooms = [room(b) for b in book(snapshot).nodes.values()]
    shapes = {job.id: job.shape for job in asks}
    stuck = {job.id for job in asks if start_all(rooms, job.shape, 1) is None}
    told = {job for one in outcome.recommendations for job in one.unlocks}
    assert told <= stuck
    assert told | {a.subject for a in outcome.abstentions} == stuck
    for one in outcome.recommendations:
        lines = [command.run for command in one.commands if "-cgi" in command.run]
        made = " ".join(lines)
        assert all(shapes[job].mig_profile in made for job in one.unlocks)
        assert one.recoverable.gpus > 0
