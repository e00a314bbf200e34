"""consolidate: every move has its place in order, nobody protected is moved, and a shape gains from it."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from datetime import timedelta

import promql_parser
import pytest

from gpuwatch.fit.booking import book
from gpuwatch.fit.feasible import fits as fits_on
from gpuwatch.fit.feasible import room
from gpuwatch.fragmentation.report import fragmentation_report
from gpuwatch.model.jobs import DeviceShare, Job, Member, ShapeCount
from tests.advice.cases import context_of, matches_golden, reasons, run
from tests.builders import NOW, a_gpu, a_job, a_node, a_shape, a_snapshot

WHOLE = ShapeCount(shape=a_shape(gpus=8, cpu=8000), count=10)


def thin(count: int, held: int = 1, **fields):
    """`count` eight-GPU nodes with `held` one-GPU jobs each."""
    nodes = [a_node(f"n{i:02}") for i in range(count)]
    jobs = [
        a_job(f"j{i}-{k}", f"n{i:02}", [k], owner=f"Job/j{i}-{k}", **fields) for i in range(count) for k in range(held)
    ]
    return nodes, jobs


def plan(nodes, jobs, arrivals=(WHOLE,), **settings):
    return run("consolidate", *nodes, jobs=jobs, arrivals=arrivals, **settings)


def moves_of(found) -> list[tuple[str, str, str]]:
    """(job, source, target) of each told move, in order of plans and moves."""
    out = []
    for one in sorted(found, key=lambda r: r.facts["order"]):
        for at in range(1, one.facts["moves"] + 1):
            job, _, where = one.facts[f"move_{at}"].partition(": ")
            source, target = (side.split(" [")[0] for side in where.split(" -> "))
            out.append((job, source, target))
    return out


def apply(jobs: list[Job], found) -> list[Job]:
    """The jobs after all told moves, each on the devices that were told for it."""
    told = {}
    for one in found:
        for at in range(1, one.facts["moves"] + 1):
            job, _, where = one.facts[f"move_{at}"].partition(": ")
            target, _, indexes = where.split(" -> ")[1].partition(" ")
            told[job] = target, [int(i) for i in indexes.strip("[]").split(",")]
    out = []
    for job in jobs:
        if job.id in told:
            node, indexes = told[job.id]
            shares = tuple(DeviceShare(gpu_index=i, milligpu=job.shape.milligpu_per_gpu) for i in indexes)
            job = replace(job, members=(replace(job.members[0], node=node, shares=shares),))
        out.append(job)
    return out


def test_golden():
    nodes, jobs = thin(2, held=2)
    waiting = a_job("big", shape=a_shape(gpus=8, cpu=8000))
    outcome = plan(nodes, [*jobs, waiting], gpu_hour_price={"default": 2.0})
    matches_golden("consolidate", outcome)
    (found,) = outcome.recommendations
    assert found.unlocks == ("ml/big",)
    assert (found.subject.name, found.facts["whole_gpus_freed_together"]) == ("n00", 8)
    assert found.commands[0].run == "kubectl cordon n00"
    assert found.commands[-1].run == "kubectl uncordon n00"
    assert all(command.undo for command in found.commands)
    for evidence in found.evidence:
        promql_parser.parse(evidence.query)


def test_ten_nodes_at_one_eighth_still_give_a_plan():
    nodes, jobs = thin(10)
    found = plan(nodes, jobs).recommendations
    assert len(found) == 8
    after = book(a_snapshot(*nodes, jobs=apply(jobs, found)))
    assert after.findings == ()
    assert sum(not any(b.holds) for b in after.nodes.values()) == 8


def test_four_nodes_at_two_eighths_pack_to_one():
    nodes, jobs = thin(4, held=2)
    found = plan(nodes, jobs).recommendations
    assert len(found) == 3
    assert {target for _, _, target in moves_of(found)} == {"n03"}


def test_the_told_index_is_that_of_the_final_state():
    nodes, jobs = thin(10)
    found = sorted(plan(nodes, jobs).recommendations, key=lambda r: r.facts["order"])
    snapshot = a_snapshot(*nodes, jobs=jobs, arrivals=(WHOLE,))
    mix = context_of(snapshot).mix
    before = fragmentation_report(book(snapshot), mix).overall.fragmentation_index
    after = fragmentation_report(
        book(replace(snapshot, jobs=tuple(apply(jobs, found)))), mix
    ).overall.fragmentation_index
    assert found[0].facts["fragmentation_index_before"] == before
    assert found[-1].facts["fragmentation_index_after"] == pytest.approx(after)
    for earlier, later in itertools.pairwise(found):
        assert earlier.facts["fragmentation_index_after"] == later.facts["fragmentation_index_before"]


def test_every_move_fits_in_order():
    nodes, jobs = thin(6, held=3)
    found = plan(nodes, jobs).recommendations
    placed = list(jobs)
    for one in sorted(found, key=lambda r: r.facts["order"]):
        placed = apply(placed, [one])
        booking = book(a_snapshot(*nodes, jobs=placed))
        assert booking.findings == ()
        assert all(min(room(b).free_milligpu) >= 0 for b in booking.nodes.values())


def test_moves_that_help_no_shape_are_not_advised():
    nodes, jobs = thin(2)
    outcome = plan(nodes, jobs, arrivals=(ShapeCount(shape=a_shape(cpu=0), count=1),))
    assert outcome.recommendations == ()
    assert set(reasons(outcome).values()) == {"helps_no_shape"}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [({"protected": True}, "protected"), ({"preemptible": False}, "not_preemptible")],
)
def test_jobs_that_must_stay_stay(fields, reason):
    nodes, jobs = thin(2, **fields)
    outcome = plan(nodes, jobs)
    assert outcome.recommendations == ()
    assert set(reasons(outcome).values()) == {reason}


def test_gangs_and_unnamed_devices_are_not_moved():
    nodes = [a_node(f"n{i:02}") for i in range(2)]
    shares = (DeviceShare(gpu_index=0),)
    ranks = tuple(Member(name=f"r{i}", node=f"n{i:02}", shares=shares, devices_known=True) for i in range(2))
    gang = Job(id="ml/gang", name="gang", shape=a_shape(), members=ranks)
    assert set(reasons(plan(nodes, [gang])).values()) == {"gang"}
    unnamed = [a_job(f"u{i}", f"n{i:02}") for i in range(2)]
    assert set(reasons(plan(nodes, unnamed)).values()) == {"devices_unknown"}


def test_the_node_with_less_work_at_risk_is_emptied():
    nodes, jobs = thin(2)
    saved = replace(jobs[1], last_checkpoint_at=NOW - timedelta(minutes=1))
    (found,) = plan(nodes, [jobs[0], saved]).recommendations
    assert found.subject.name == "n01"
    assert found.risk.work_lost_seconds == 60


def test_work_without_gpus_is_never_moved():
    nodes, jobs = thin(2)
    cpu_only = a_job("cpu", "n00", [], shape=a_shape(gpus=0, cpu=1000))
    (found,) = plan(nodes, [*jobs, cpu_only]).recommendations
    assert "cpu" not in {job for job, _, _ in moves_of([found])}
    assert not any("cpu-0" in command.run for command in found.commands)


def test_cpu_of_the_target_is_respected():
    nodes = [a_node("n00"), a_node("n01", cpu_allocatable_millicores=7000)]
    jobs = [a_job(f"j{i}", f"n{i:02}", [0], shape=a_shape(cpu=4000)) for i in range(2)]
    assert reasons(plan(nodes, jobs))["n00"] == "no_room_elsewhere"


def test_jobs_stay_in_their_pool_and_on_their_card():
    other_pool = [a_node("n00", pool="a"), a_node("n01", pool="b")]
    jobs = [a_job(f"j{i}", f"n{i:02}", [0]) for i in range(2)]
    assert plan(other_pool, jobs).recommendations == ()
    other_card = [a_node("n00"), a_node("n01", model="A100-80")]
    assert plan(other_card, jobs).recommendations == ()


def test_empty_and_blocked_nodes_are_no_targets():
    nodes = [a_node("n00"), a_node("n01"), a_node("n02", block_causes=("cordoned",))]
    jobs = [a_job("j0", "n00", [0]), a_job("j2", "n02", [0])]
    outcome = plan(nodes, jobs)
    assert outcome.recommendations == ()
    assert reasons(outcome) == {"n00": "no_room_elsewhere"}


def test_more_moves_than_worth_it():
    nodes, jobs = thin(2, held=3)
    outcome = plan(nodes, jobs, consolidate_max_moves=2)
    assert set(reasons(outcome).values()) == {"too_many_moves"}


def test_nothing_to_do_without_nodes_or_jobs():
    assert plan([], []).recommendations == ()
    assert plan([a_node(gpus=[a_gpu(0)])], []).abstentions == ()


def test_leaving_an_unhealthy_device_gives_nothing_back():
    """The told index is that of the state after the moves, also where what is free shrinks."""
    nodes, jobs = thin(3, held=2)
    sick = tuple(replace(gpu, health="unhealthy") if gpu.index == 0 else gpu for gpu in nodes[0].gpus)
    nodes[0] = replace(nodes[0], gpus=sick)
    arrivals = (WHOLE, ShapeCount(shape=a_shape(gpus=7, cpu=8000), count=10))
    snapshot = a_snapshot(*nodes, jobs=jobs, arrivals=arrivals)
    mix = context_of(snapshot).mix
    placed = list(jobs)
    emptied = set()
    for one in sorted(plan(nodes, jobs, arrivals).recommendations, key=lambda r: r.facts["order"]):
        before = fragmentation_report(book(replace(snapshot, jobs=tuple(placed))), mix).overall
        placed = apply(placed, [one])
        after = fragmentation_report(book(replace(snapshot, jobs=tuple(placed))), mix).overall
        assert one.facts["fragmentation_index_before"] == pytest.approx(before.fragmentation_index)
        assert one.facts["fragmentation_index_after"] == pytest.approx(after.fragmentation_index)
        usable = [told.free_milligpu - told.stranded_milligpu for told in (before, after)]
        assert one.recoverable.gpus == pytest.approx((usable[1] - usable[0]) / 1000, abs=1e-3)
        emptied.add(one.subject.name)
    assert "n00" in emptied


def test_what_fits_less_often_is_told():
    nodes, jobs = thin(2, held=1)
    small = ShapeCount(shape=a_shape(gpus=1, cpu=12_000), count=1)
    outcome = plan(nodes, jobs, arrivals=(WHOLE, small))
    told = {one.facts["shapes_fitting_less_often"] for one in outcome.recommendations}
    assert told <= {"", small.shape.label}
    assert outcome.recommendations


def _random_cluster(seed: int):
    """Mixed cards, unhealthy devices, cordoned nodes, shares of devices, and CPU asked for beyond capacity."""
    pick = random.Random(seed)
    nodes, jobs = [], []
    for at in range(pick.randint(6, 30)):
        model, count = pick.choice(["H100-80", "H100-80", "A100-80"]), pick.choice([4, 8])
        sick = [pick.random() < 0.08 for _ in range(count)]
        gpus = [
            a_gpu(i, model, uuid=f"GPU-{at}-{i}", health="unhealthy" if sick[i] else "healthy") for i in range(count)
        ]
        cpu = pick.choice([16_000, 48_000, 96_000])
        blocked = ("cordoned",) if pick.random() < 0.08 else ()
        pool = pick.choice(["a", "b"])
        nodes.append(a_node(f"n{at:02}", gpus=gpus, pool=pool, block_causes=blocked, cpu_allocatable_millicores=cpu))
        left = [1000] * count
        for number in range(pick.randint(0, 5)):
            wanted = pick.choice([1, 1, 1, 2, 3, 4])
            each = 1000 if wanted > 1 else pick.choice([1000, 500, 250])
            fitting = [i for i in range(count) if left[i] >= each]
            if len(fitting) < wanted:
                continue
            chosen = sorted(pick.sample(fitting, wanted))
            for i in chosen:
                left[i] -= each
            shape = a_shape(gpus=wanted, milligpu=each, cpu=pick.choice([1000, 8000]))
            jobs.append(a_job(f"j{at}-{number}", f"n{at:02}", chosen, shape=shape, owner="Job/x"))
    jobs += [a_job(f"w{i}", shape=a_shape(gpus=pick.choice([2, 4, 8]), cpu=4000)) for i in range(pick.randint(0, 6))]
    return nodes, jobs


@pytest.mark.parametrize("seed", range(12))
def test_plans_on_random_clusters_do_what_they_say(seed):
    """Each told move is made in a snapshot, which is then counted anew from nothing."""
    nodes, jobs = _random_cluster(seed)
    found = plan(nodes, jobs, ()).recommendations
    snapshot = a_snapshot(*nodes, jobs=jobs)
    mix = context_of(snapshot).mix
    placed = list(jobs)
    for one in sorted(found, key=lambda r: r.facts["order"]):
        before, placed = placed, apply(placed, [one])
        was, now = (book(replace(snapshot, jobs=tuple(state))) for state in (before, placed))
        assert len(now.findings) <= len(was.findings)
        assert not any(now.nodes[one.subject.name].holds)
        told = [fragmentation_report(state, mix) for state in (was, now)]
        assert one.facts["fragmentation_index_before"] == pytest.approx(told[0].overall.fragmentation_index)
        assert one.facts["fragmentation_index_after"] == pytest.approx(told[1].overall.fragmentation_index)
        usable = [t.overall.free_milligpu - t.overall.stranded_milligpu for t in told]
        assert one.recoverable.gpus == pytest.approx((usable[1] - usable[0]) / 1000, abs=1e-3)
        fits = [{f.shape: f.fits_now for f in t.shapes if f.shape.gpus} for t in told]
        more = sorted(shape.label for shape in fits[1] if fits[1][shape] > fits[0][shape])
        less = sorted(shape.label for shape in fits[1] if fits[1][shape] < fits[0][shape])
        assert one.facts["shapes_helped"] == ", ".join(more)
        assert one.facts["shapes_fitting_less_often"] == ", ".join(less)
        waiting = {job.id: job.shape for job in placed if job.id in one.unlocks}
        assert len(waiting) == len(one.unlocks)
        for shape in waiting.values():
            assert not any(fits_on(room(b), shape) for b in was.nodes.values())
            assert any(fits_on(room(b), shape) for b in now.nodes.values())
