"""Layouts for a demand of profiles: the best there is, within the limits, and told honestly where it falls short."""

from __future__ import annotations

import random
import sys
from dataclasses import replace

import pytest

from gpuwatch.errors import InputError
from gpuwatch.fit.booking import book
from gpuwatch.fit.feasible import fits, room
from gpuwatch.fit.mig import arrangements, geometry_of
from gpuwatch.model.catalogue import cards
from gpuwatch.model.cluster import Activity
from gpuwatch.model.mig import MigAsk
from gpuwatch.placement.mig.after import node_after
from gpuwatch.placement.mig.asks import asks_of, check_profiles, waiting_asks
from gpuwatch.placement.mig.classes import problem_of
from gpuwatch.placement.mig.devices import Limits, devices_of, empty_devices
from gpuwatch.placement.mig.exact import best_choice, rounded
from gpuwatch.placement.mig.greedy import greedy_choice
from gpuwatch.placement.mig.options import size
from gpuwatch.placement.mig.plan import plan_layouts
from gpuwatch.placement.mig.unmet import in_the_way
from tests.builders import a_gpu, a_job, a_node, a_shape, a_snapshot, busy
from tests.placement.mig.clusters import NAMES, a_cut, an_instance, applied, on, places, planned, random_cut
from tests.reference import mig as plain

KINDS = tuple(NAMES)


def a_demand(rng: random.Random) -> dict[str, int]:
    return {kind: rng.randint(1, 5 if kind == "1g" else 2) for kind in rng.sample(KINDS, rng.randint(1, 3))}


def room_of(profile: str | None) -> int:
    known = cards()["H100-80"].mig.profile(profile) if profile else None
    return size(known) if known else 0


@pytest.mark.parametrize("seed", range(40))
def test_the_exact_plan_is_the_best_of_all(seed):
    """Met slices and instances, free devices lost, devices changed, instances deleted, room lost: by brute force."""
    rng = random.Random(seed)
    snapshot, twin = random_cut(rng, rng.randint(1, 3))
    asked = a_demand(rng)
    plan = planned(snapshot, {NAMES[kind]: count for kind, count in asked.items()})
    deleted = sum(len(each.delete) for each in plan.devices)
    met = sum(answer.ready + answer.created for answer in plan.answers)
    room = sum(room_of(each.largest_before) - room_of(each.largest_after) for each in plan.devices)
    found = (-plan.met_slices, -met, plan.free_gpus_lost, plan.repartitioned, deleted, room)
    assert plan.method == "exact"
    assert found == plain.best(twin, asked, KINDS)
    assert (plan.most_met_slices, plan.fewest_free_gpus_lost) == (plan.met_slices, plan.free_gpus_lost)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("seed", range(40))
def test_a_plan_touches_no_held_instance_overlaps_nothing_and_does_what_it_says(seed, exact):
    rng = random.Random(1000 + seed)
    snapshot, _ = random_cut(rng, rng.randint(1, 6))
    demand = {NAMES[kind]: count for kind, count in a_demand(rng).items()}
    plan = planned(snapshot, demand, exact)
    after = applied(snapshot, plan)
    before = book(snapshot).nodes["n1"]
    booked = book(after)
    assert booked.findings == ()
    for at, gpu in enumerate(after.nodes[0].gpus):
        assert arrangements(geometry_of(gpu), gpu.mig_instances), "an overlap, or more slices than there are"
        held = {hold.mig_instance for hold in before.holds[at]}
        ids = {each.id for each in gpu.mig_instances}
        assert held <= ids
    free = [
        each.profile
        for at, gpu in enumerate(after.nodes[0].gpus)
        for each in gpu.mig_instances
        if each.id not in {hold.mig_instance for hold in before.holds[at]}
    ]
    for answer in plan.answers:
        assert answer.ready + answer.created + answer.unmet == answer.ask.count
        assert free.count(answer.ask.profile) >= answer.ready + answer.created
        assert (answer.reason is None) == (answer.unmet == 0)
    if exact:
        again = planned(after, demand)
        assert sum(a.ready for a in again.answers) == sum(a.ready + a.created for a in plan.answers)
        assert again.repartitioned == 0, "the same demand after the plan needs nothing more"


@pytest.mark.parametrize("seed", range(30))
def test_without_a_start_the_greedy_choice_is_legal_and_a_start_makes_it_no_worse(seed):
    rng = random.Random(3000 + seed)
    snapshot, _ = random_cut(rng, 6)
    devices, _ = devices_of(book(snapshot), Limits())
    problem = problem_of(asks_of({NAMES[kind]: count for kind, count in a_demand(rng).items()}), devices)
    plain_choice, begun = greedy_choice(problem), greedy_choice(problem, rounded(problem))
    best = best_choice(problem)
    for choice in (plain_choice, begun):
        assert choice.met(problem) <= best.met(problem)
        for group, row in zip(problem.classes, choice.counts, strict=True):
            assert sum(row) <= len(group.devices)
        for ask, meets in zip(problem.asks, choice.meets, strict=True):
            assert sum(meets) <= ask.count
    fast = planned(snapshot, {ask.profile: ask.count for ask in problem.asks}, exact=False)
    assert fast.met_slices >= plain_choice.met(problem)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_greedy_says_how_far_it_may_be_from_the_best(seed):
    rng = random.Random(2000 + seed)
    snapshot, _ = random_cut(rng, 6)
    demand = {NAMES[kind]: count for kind, count in a_demand(rng).items()}
    fast, best = planned(snapshot, demand, exact=False), planned(snapshot, demand)
    assert fast.method == "greedy"
    assert fast.met_slices <= best.met_slices <= fast.most_met_slices
    if fast.met_slices == best.met_slices:
        assert fast.fewest_free_gpus_lost <= best.free_gpus_lost <= fast.free_gpus_lost


def test_seven_small_ones_come_to_one_gpu_not_to_several():
    snapshot = a_snapshot(a_node("n1", [a_cut(index) for index in range(4)]))
    plan = planned(snapshot, {"1g.10gb": 7})
    assert (plan.free_gpus_before, plan.free_gpus_lost, plan.repartitioned) == (4, 1, 1)
    assert [spot.start for spot in plan.devices[0].create] == [0, 1, 2, 3, 4, 5, 6]


def test_a_small_one_goes_beside_what_is_cut_already():
    used = a_cut(0, an_instance(3, "3g.40gb", 4))
    snapshot = a_snapshot(a_node("n1", [a_cut(1), used]), jobs=[on("n1", used, "3")])
    plan = planned(snapshot, {"1g.10gb": 1})
    assert (plan.free_gpus_lost, plan.devices[0].gpu_index) == (0, 0)


@pytest.mark.parametrize(("small", "left"), [("1g.10gb", "4g.40gb"), ("2g.20gb", "4g.40gb"), ("3g.40gb", "4g.40gb")])
def test_the_largest_later_profile_stays_placeable(small, left):
    """A small one goes where it leaves the largest: never onto the first half, where only the 4g fits."""
    plan = planned(a_snapshot(a_node("n1", [a_cut(0)])), {small: 1})
    (made,) = plan.devices[0].create
    assert made.start >= 4
    assert (plan.devices[0].largest_before, plan.devices[0].largest_after) == ("7g.80gb", left)


def test_free_instances_serve_before_anything_is_cut():
    gpu = a_cut(0, an_instance(3, "1g.10gb", 0), an_instance(4, "1g.10gb", 1))
    plan = planned(a_snapshot(a_node("n1", [gpu, a_cut(1)])), {"1g.10gb": 2})
    assert (plan.answers[0].ready, plan.answers[0].created, plan.repartitioned) == (2, 0, 0)
    assert plan.devices[0].serves == {"1g.10gb": 2}


def test_idle_instances_in_the_way_are_deleted_and_held_ones_named():
    gpu = a_cut(0, an_instance(3, "1g.10gb", 0), an_instance(4, "1g.10gb", 5))
    snapshot = a_snapshot(a_node("n1", [gpu]), jobs=[on("n1", gpu, "4")])
    plan = planned(snapshot, {"4g.40gb": 1})
    assert [(spot.id, spot.start) for spot in plan.devices[0].delete] == [("3", 0)]
    plan = planned(snapshot, {"7g.80gb": 1})
    assert plan.unmet == 1
    assert plan.answers[0].reason == "held instances stand in the way on 1 of the 1 devices with this profile"
    assert plan.answers[0].blocked_by == ("n1 GPU 0: instance 4 (1g.10gb at 5, held by ml/n1-0-4)",)


def test_the_fewest_that_stand_in_the_way_are_named():
    gpu = a_cut(0, *(an_instance(3 + at, "1g.10gb", at) for at in range(3)), an_instance(9, "1g.10gb", 6))
    jobs = [on("n1", gpu, each.id) for each in gpu.mig_instances]
    (device,), _ = devices_of(book(a_snapshot(a_node("n1", [gpu]), jobs=jobs)), Limits())
    assert [spot.id for spot in in_the_way(device, "3g.40gb")] == ["9"]
    assert in_the_way(device, "1g.10gb") == ()


def test_at_most_one_with_media_extensions_on_a_device():
    plan = planned(a_snapshot(a_node("n1", [a_cut(0), a_cut(1)])), {"1g.10gb+me": 3})
    assert (plan.answers[0].created, plan.answers[0].unmet) == (2, 1)


def test_four_doubled_and_three_small_do_not_fit_one_device():
    plan = planned(a_snapshot(a_node("n1", [a_cut(0)])), {"1g.20gb": 4, "1g.10gb": 3})
    assert plan.unmet == 2  # three doubled ones and two small ones fill the memory


def test_starts_that_are_not_told_are_planned_for_the_worst():
    """A 3g somewhere leaves room for three 1g for sure; where they go is left to the driver."""
    gpu = a_cut(0, an_instance(3, "3g.40gb", None))
    snapshot = a_snapshot(a_node("n1", [gpu]), jobs=[on("n1", gpu, "3")])
    plan = planned(snapshot, {"1g.10gb": 4})
    assert (plan.answers[0].created, plan.answers[0].unmet) == (3, 1)
    assert {spot.start for spot in plan.devices[0].create} == {None}
    assert planned(snapshot, {"4g.40gb": 1}).unmet == 1


def test_cards_are_cut_by_their_own_names():
    """1g.10gb is the doubled one of an A100-40 and the plain one of an H100: fewest devices, of either card."""
    snapshot = a_snapshot(a_node("n1", [a_cut(0, model="A100-40"), a_cut(1)]))
    plan = planned(snapshot, {"1g.10gb": 6})
    assert [(each.gpu_model, len(each.create)) for each in plan.devices] == [("H100-80", 6)]
    assert planned(snapshot, {"1g.10gb": 11}).unmet == 0
    only = planned(snapshot, {"1g.10gb": 6}, gpu_models=("A100-40",))
    assert (only.considered, only.unmet) == (1, 2)
    a30 = planned(a_snapshot(a_node("n1", [a_cut(0, model="A30")])), {"1g.6gb": 2, "2g.12gb": 1})
    assert sorted((s.profile, s.start) for s in a30.devices[0].create) in (
        [("1g.6gb", 0), ("1g.6gb", 1), ("2g.12gb", 2)],
        [("1g.6gb", 2), ("1g.6gb", 3), ("2g.12gb", 0)],
    )
    rtx = planned(a_snapshot(a_node("n1", [a_cut(0, model="RTX-PRO-6000")])), {"2g.48gb": 2})
    assert [s.start for s in rtx.devices[0].create] == [0, 6]


@pytest.mark.parametrize("exact", [True, False])
def test_of_equal_devices_the_lower_card_is_taken(exact):
    snapshot = a_snapshot(a_node("n1", [a_cut(0), a_cut(1, model="A100-80"), a_cut(2)]))
    plan = planned(snapshot, {"1g.10gb": 7}, exact)
    assert [(each.gpu_model, each.gpu_index) for each in plan.devices] == [("A100-80", 1)]
    used = a_cut(0, an_instance(3, "3g.40gb", 4))
    snapshot = a_snapshot(a_node("n1", [used, a_cut(1, model="A100-80")]), jobs=[on("n1", used, "3")])
    assert [each.gpu_index for each in planned(snapshot, {"1g.10gb": 2}, exact).devices] == [0]


def test_devices_that_jobs_hold_are_left_out_and_training_above_all():
    node = a_node("n1", 3)
    jobs = [a_job("train", "n1", [0], kind="training"), a_job("serve", "n1", [1], kind="inference")]
    snapshot = a_snapshot(node, jobs=jobs)
    plan = planned(snapshot, {"7g.80gb": 3})
    assert (plan.considered, plan.left_out, plan.unmet) == (1, {"busy": 1, "training": 1}, 2)
    assert "left out: 1 busy, 1 training" in (plan.answers[0].reason or "")
    plan = planned(snapshot, {"7g.80gb": 3}, include_busy=True)
    assert (plan.left_out, [each.drain for each in plan.devices]) == ({"training": 1}, [("ml/serve",), ()])
    plan = planned(snapshot, {"7g.80gb": 3}, include_busy=True, allow_training=True)
    assert plan.unmet == 0
    one = planned(snapshot, {"7g.80gb": 1}, include_busy=True, allow_training=True)
    assert [each.gpu_index for each in one.devices] == [2], "who need not be drained is not"


@pytest.mark.parametrize(
    ("snapshot", "reason"),
    [
        (a_snapshot(a_node("n1", [a_gpu(0, health="unhealthy")])), "unhealthy"),
        (a_snapshot(a_node("n1", 1, block_causes=("cordoned",))), "blocked"),
        (a_snapshot(a_node("n1", [a_gpu(0, replicas=4)])), "time_sliced"),
        (a_snapshot(a_node("n1", 2), jobs=[a_job("j", "n1")]), "devices_unknown"),
        (a_snapshot(a_node("n1", 1), jobs=[a_job("j", "n1", [0], protected=True)]), "job_must_stay"),
        (
            a_snapshot(a_node("n1", [a_cut(0, an_instance(3, "4g.40gb", 0), an_instance(4, "3g.40gb", 0))])),
            "layout_contradicts",
        ),
    ],
)
def test_why_a_device_is_left_out(snapshot, reason):
    devices, out = devices_of(book(snapshot), Limits(include_busy=True))
    assert devices == []
    assert set(out) == {reason}


def test_an_instance_that_works_without_a_holder_is_not_deleted():
    idle = an_instance(3, "1g.10gb", 0)
    working = replace(idle, activity=busy())
    for instance, deletable in ((idle, True), (working, False), (replace(idle, activity=busy(peak=0.0)), True)):
        plan = planned(a_snapshot(a_node("n1", [a_cut(0, instance)])), {"7g.80gb": 1})
        assert (plan.unmet == 0) == deletable
    unknown = replace(idle, activity=Activity(window_seconds=1800, samples=0, samples_expected=60))
    assert planned(a_snapshot(a_node("n1", [a_cut(0, unknown)])), {"7g.80gb": 1}).unmet == 0


def test_pools_and_models_of_an_ask_are_kept():
    snapshot = a_snapshot(
        a_node("n1", [a_cut(0)], pool="a"),
        a_node("n2", [a_cut(0)], pool="b"),
        a_node("n3", [a_cut(0, model="A100-80")]),
    )
    devices, _ = devices_of(book(snapshot), Limits())
    asks = (MigAsk(profile="7g.80gb", count=2, pool="a"), MigAsk(profile="7g.80gb", count=1, gpu_models=("A100-80",)))
    plan = plan_layouts(asks, devices)
    assert [(answer.created, answer.unmet) for answer in plan.answers] == [(1, 1), (1, 0)]
    assert [each.node for each in plan.devices] == ["n1", "n3"]
    fast = plan_layouts((MigAsk(profile="7g.80gb", count=1), *asks[1:]), devices, effort=None)
    assert fast.unmet == 0


def test_the_jobs_that_wait_are_the_demand():
    jobs = [
        a_job("a", shape=a_shape(2, mig_profile="1g.10gb"), pool="x"),
        a_job("b", shape=a_shape(1, mig_profile="1g.10gb"), pool="x"),
        a_job("c", shape=a_shape(1, mig_profile="3g.40gb")),
        a_job("t", shape=a_shape(1, mig_profile="3g.40gb"), kind="training"),
        a_job("g", shape=a_shape(1, mig_profile="3g.40gb"), phase="gated"),
        a_job("w", shape=a_shape(1)),
        a_job("r", "n1", shape=a_shape(1, mig_profile="1g.10gb")),
    ]
    asks, off = waiting_asks(a_snapshot(jobs=jobs))
    assert [(ask.profile, ask.count, ask.pool, ask.jobs) for ask in asks] == [
        ("1g.10gb", 1, "x", ("ml/b",)),
        ("1g.10gb", 2, "x", ("ml/a",)),
        ("3g.40gb", 1, None, ("ml/c",)),
    ]
    assert off == ("ml/t",)
    assert waiting_asks(a_snapshot(jobs=jobs), allow_training=True)[1] == ()


def test_instances_that_one_member_needs_come_to_one_node():
    used = a_cut(0, an_instance(3, "3g.40gb", 4), an_instance(4, "1g.10gb", 0))
    nodes = [a_node("n1", [used]), a_node("n2", [a_cut(0)])]
    snapshot = a_snapshot(*nodes, jobs=[on("n1", used, "3"), on("n1", used, "4")])
    devices, _ = devices_of(book(snapshot), Limits())
    pair = MigAsk(profile="2g.20gb", count=2, together=2)
    plan = plan_layouts((pair,), devices)
    assert ([each.node for each in plan.devices], plan.method, plan.unmet) == (["n2"], "greedy", 0)
    assert (plan.most_met_slices, plan.fewest_free_gpus_lost) == (4, 1)
    both = plan_layouts((pair, MigAsk(profile="4g.40gb", count=1), MigAsk(profile="2g.20gb", count=1)), devices)
    assert [(a.created, a.unmet) for a in both.answers] == [(2, 0), (0, 1), (1, 0)]
    two = plan_layouts((replace(pair, count=6),), devices)
    assert (two.answers[0].created, two.answers[0].unmet) == (2, 4)
    free = a_cut(0, an_instance(3, "2g.20gb", 0))
    devices, _ = devices_of(book(a_snapshot(a_node("n1", [free]))), Limits())
    ready = plan_layouts((pair, MigAsk(profile="3g.40gb", count=1)), devices)
    assert [(a.ready, a.created, a.unmet) for a in ready.answers] == [(1, 1, 0), (0, 1, 0)]
    (layout,) = ready.devices
    assert ([s.id for s in layout.keep], layout.delete) == (["3"], ())
    assert sorted((s.profile, s.start) for s in layout.create) == [("2g.20gb", 2), ("3g.40gb", 4)]
    assert (layout.was_free, layout.largest_before, layout.largest_after) == (True, "3g.40gb", None)


def test_demands_without_sense_are_refused():
    with pytest.raises(InputError, match="-1 instances"):
        asks_of({"1g.10gb": -1})
    with pytest.raises(InputError, match="cannot be planned"):
        asks_of({"1g.10gb": 10**9})
    cuts = {"H100-80": [device.geometry for device in empty_devices("H100-80", 1)]}
    with pytest.raises(InputError, match=r"called 1g.18gb") as err:
        check_profiles(asks_of({"1g.18gb": 1}), cuts)
    assert "1g.10gb, 1g.10gb+me" in err.value.tried
    check_profiles(asks_of({"1g.10gb": 1}), cuts)
    assert empty_devices("T4", 3) == []


def test_nothing_asked_or_nothing_there_is_an_answer():
    assert plan_layouts((), empty_devices("H100-80", 2)).devices == ()
    plan = plan_layouts(asks_of({"1g.10gb": 2}), [])
    assert (plan.unmet, plan.devices, plan.method) == (2, (), "exact")


def test_a_hundred_empty_devices():
    plan = plan_layouts(
        asks_of({"1g.10gb": 400, "3g.40gb": 80, "2g.20gb": 1, "1g.20gb": 2}), empty_devices("H100-80", 100)
    )
    assert (plan.method, plan.unmet, plan.repartitioned) == ("exact", 0, 92)


def test_a_node_after_the_plan_has_room_for_what_was_asked():
    gpu = a_cut(0, an_instance(3, "1g.10gb", 0), an_instance(4, "3g.40gb", 4))
    snapshot = a_snapshot(a_node("n1", [gpu, a_gpu(1)]), jobs=[on("n1", gpu, "4")])
    plan = planned(snapshot, {"4g.40gb": 1, "7g.80gb": 1})
    before = book(snapshot).nodes["n1"]
    after = node_after(before, plan.devices)
    for profile in ("4g.40gb", "7g.80gb"):
        assert fits(room(before), a_shape(1, mig_profile=profile)) == 0
        assert fits(room(after), a_shape(1, mig_profile=profile)) == 1
    assert (room(before).free_milligpu, room(after).free_milligpu) == ([0, 1000], [0, 0])
    assert after.holds == before.holds


def test_without_scipy_the_greedy_plan_is_made_and_bounds_are_unknown(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    plan = planned(a_snapshot(a_node("n1", [a_cut(0)])), {"1g.10gb": 2})
    assert (plan.method, plan.unmet) == ("greedy", 0)
    assert plan.most_met_slices is plan.fewest_free_gpus_lost is None


def test_undoing_gives_the_layout_back():
    gpu = a_cut(0, an_instance(3, "1g.10gb", 0), an_instance(4, "3g.40gb", 4))
    snapshot = a_snapshot(a_node("n1", [gpu]))
    plan = planned(snapshot, {"4g.40gb": 1})
    (layout,) = plan.devices
    back = [*layout.delete, *layout.keep]
    assert sorted((spot.profile, spot.start) for spot in back) == places(gpu.mig_instances)
