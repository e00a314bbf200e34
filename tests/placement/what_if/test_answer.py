"""What-if answers: choices, what they leave, and why nothing fits."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from gpuwatch.demand.mix import demand_mix
from gpuwatch.errors import InputError, SettingsError
from gpuwatch.fit import feasible
from gpuwatch.fit.booking import book
from gpuwatch.fragmentation.report import fragmentation_report
from gpuwatch.model.cluster import MigInstance
from gpuwatch.model.jobs import DeviceShare, Member, ShapeCount
from gpuwatch.model.placement import PlacementRequest
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.placement.arrivals import place_stream
from gpuwatch.placement.what_if.answer import WhatIf
from tests.builders import a_gpu, a_job, a_node, a_shape, a_snapshot
from tests.placement.random_clusters import some_cluster, some_shape

MIX = tuple(ShapeCount(shape=a_shape(gpus), count=1) for gpus in (1, 2, 4, 8))


def ask(snapshot, shape, **fields):
    request = PlacementRequest(shape=shape, **fields)
    return WhatIf(book(snapshot), demand_mix(snapshot, AnalysisSettings())).answer(request, "e1")


def with_free(**free: int):
    """8-GPU nodes by name with so many devices free."""
    jobs = [a_job(f"on-{name}", name, list(range(8 - count))) for name, count in free.items() if count < 8]
    return a_snapshot(*(a_node(name) for name in free), jobs=jobs, arrivals=MIX)


def with_choice(snapshot, request, choice):
    """The snapshot with the choice's members bound as advised."""
    members = tuple(
        Member(
            name=f"m{at}",
            node=spot.node,
            devices_known=not request.shape.mig_profile,
            shares=tuple(DeviceShare(gpu_index=i, milligpu=request.shape.milligpu_per_gpu) for i in spot.gpus)
            if not request.shape.mig_profile
            else (),
        )
        for at, spot in enumerate(choice.assignments)
    )
    job = replace(a_job("asked", shape=request.shape, phase="running"), members=members)
    return replace(snapshot, jobs=(*snapshot.jobs, job))


@pytest.mark.parametrize("policy", ["best_fit", "fgd"])
def test_two_gpus_go_to_the_hole_of_two_and_leave_the_hole_of_four(policy):
    advice = ask(with_free(a=4, b=2), a_shape(2), policy=policy)
    assert [[spot.node for spot in choice.assignments] for choice in advice.choices] == [["b"], ["a"]]
    assert advice.choices[0].assignments[0].gpus == (6, 7)
    assert "4xGPU 4cpu" not in advice.choices[0].blocked_shapes
    assert "4xGPU 4cpu" in advice.choices[1].blocked_shapes


def test_eight_by_sum_but_not_by_shape():
    advice = ask(with_free(a=4, b=4), a_shape(8))
    assert not advice.feasible
    assert advice.choices == ()
    assert advice.fits_by_sum_not_by_shape
    assert advice.blockers == {"gpu_lacking": 2}
    assert advice.nearest_fix == "ask for 2 members of 4 GPUs instead of 1 of 8: fits on 2 nodes"


def test_too_few_by_sum_is_not_called_fragmentation():
    assert not ask(with_free(a=4, b=3), a_shape(8)).fits_by_sum_not_by_shape


@pytest.mark.parametrize("policy", ["best_fit", "fgd"])
@pytest.mark.parametrize("seed", range(60))
def test_every_choice_is_feasible_and_tells_the_index_after(policy, seed):
    rng = random.Random(seed)
    # Jobs on named devices: those whose devices are guessed are guessed anew when another job is added.
    cluster = replace(some_cluster(seed), jobs=(), arrivals=MIX)
    snapshot = place_stream(cluster, some_cluster(seed, jobs=6).jobs)
    shape = some_shape(rng)
    if not (shape.gpus or shape.cpu_millicores or shape.memory_bytes):
        return
    request = PlacementRequest(
        shape=shape, members=rng.choice((1, 1, 2, 3, 7)), policy=policy, same_nvlink_domain=rng.random() < 0.3
    )
    mix = demand_mix(snapshot, AnalysisSettings())
    advice = WhatIf(book(snapshot), mix).answer(request, "e1")
    assert advice.feasible == bool(advice.choices)
    assert advice.feasible == (advice.nearest_fix is None)
    if shape.gpus and not request.same_nvlink_domain:
        rooms = [feasible.room(booked) for booked in book(snapshot).nodes.values()]
        assert advice.feasible == (feasible.start_all(rooms, shape, request.members) is not None)
    before = fragmentation_report(book(snapshot), mix).overall
    already = len(book(snapshot).findings)
    domains = {node.name: node.nvlink_domain or f"own {node.name}" for node in snapshot.nodes}
    for choice in advice.choices:
        assert len(choice.assignments) == request.members
        after = with_choice(snapshot, request, choice)
        booking = book(after)
        assert len(booking.findings) == already
        assert choice.fragmentation_before == before.fragmentation_index
        if not shape.mig_profile:
            report = fragmentation_report(booking, mix).overall
            assert choice.fragmentation_after == pytest.approx(report.fragmentation_index)
            assert choice.stranded_delta_milligpu == pytest.approx(
                report.stranded_milligpu - before.stranded_milligpu, abs=1e-6
            )
        if request.same_nvlink_domain and shape.gpus * request.members > 1:
            assert len({domains[spot.node] for spot in choice.assignments}) == 1
    sets = [tuple(sorted(spot.node for spot in choice.assignments)) for choice in advice.choices]
    assert len(set(sets)) == len(sets)
    assert [choice.rank for choice in advice.choices] == list(range(1, len(sets) + 1))


def test_a_fuller_device_ranks_above_an_emptier_one_under_best_fit():
    jobs = [
        a_job(f"j{i}", name, [0], shape=a_shape(1, milligpu=held))
        for i, (name, held) in enumerate((("a", 100), ("b", 110), ("c", 120)))
    ]
    snapshot = a_snapshot(*(a_node(name, 1) for name in "abc"), jobs=jobs)
    advice = ask(snapshot, a_shape(1, milligpu=200), policy="best_fit")
    assert [choice.assignments[0].node for choice in advice.choices] == ["c", "b", "a"]


def test_a_gang_spreads_over_nodes_and_counts_them_all():
    advice = ask(with_free(a=4, b=5, c=1), a_shape(2), members=4)
    assert advice.feasible
    assert sorted(spot.node for spot in advice.choices[0].assignments) == ["a", "a", "b", "b"]
    assert advice.blockers == {"gpu_lacking": 1}
    assert not ask(with_free(a=4, b=5, c=1), a_shape(2), members=5).feasible


def test_one_nvlink_domain_for_all_members():
    racks = [a_node(f"r{i}", 4, model="GB200", nvlink_domain="rack" if i < 3 else None) for i in range(5)]
    snapshot = a_snapshot(*racks, arrivals=MIX)
    advice = ask(snapshot, a_shape(4), members=3, same_nvlink_domain=True)
    assert [sorted(spot.node for spot in choice.assignments) for choice in advice.choices] == [["r0", "r1", "r2"]]
    assert advice.blockers == {"nvlink_domain": 2}
    refused = ask(snapshot, a_shape(4), members=4, same_nvlink_domain=True)
    assert not refused.feasible
    assert refused.nearest_fix == "do without one NVLink domain: fits on 5 nodes"


def test_cards_without_nvlink_cannot_join_devices_but_take_single_ones():
    snapshot = a_snapshot(a_node("t", 4, model="T4"), a_node("u", 4, model="Mystery 9"))
    advice = ask(snapshot, a_shape(2), same_nvlink_domain=True)
    assert [choice.assignments[0].node for choice in advice.choices] == ["u"]
    assert advice.blockers == {"no_nvlink": 1}
    assert len(ask(snapshot, a_shape(1), same_nvlink_domain=True).choices) == 2


def test_shares_and_whole_devices_are_booked_on_the_same_device():
    whole = [a_job("w", "a", [0, 1, 2, 3])]
    assert ask(a_snapshot(a_node("a", 4), jobs=whole), a_shape(1, milligpu=100)).blockers == {"gpu_lacking": 1}
    shared = [a_job(f"s{i}", "a", [i], shape=a_shape(1, milligpu=100)) for i in range(4)]
    snapshot = a_snapshot(a_node("a", 4), jobs=shared)
    assert not ask(snapshot, a_shape(1)).feasible
    assert ask(snapshot, a_shape(1, milligpu=900)).feasible


def test_mig_goes_to_created_instances_only():
    slices = [MigInstance(id=str(i), profile="1g.10gb", compute_slices=1, memory_slices=1) for i in range(2)]
    gpus = [a_gpu(3, mig_enabled=True, mig_instances=tuple(slices)), a_gpu(4, mig_enabled=True)]
    snapshot = a_snapshot(a_node("a", gpus), a_node("b"), arrivals=MIX)
    small = a_shape(1, mig_profile="1g.10gb")
    advice = ask(snapshot, small, members=2)
    assert [spot.gpus for spot in advice.choices[0].assignments] == [(3,), (3,)]
    assert advice.blockers == {"mig_profile": 1}
    refused = ask(snapshot, a_shape(1, mig_profile="7g.80gb"))
    assert not refused.feasible
    assert refused.blockers == {"mig_profile": 1, "mig_repartition_needed": 1}
    assert refused.nearest_fix == "repartition idle slices (gpuwatch mig plan): fits on 1 node"


def test_top_limits_the_choices():
    snapshot = with_free(**{f"n{i}": 8 for i in range(7)})
    assert len(ask(snapshot, a_shape()).choices) == 5
    assert len(ask(snapshot, a_shape(), top=2).choices) == 2


def test_nothing_free_after_gives_no_index_after():
    choice = ask(with_free(a=2), a_shape(2)).choices[0]
    assert choice.fragmentation_before is not None
    assert choice.fragmentation_after is None


def test_without_demand_there_are_choices_but_no_index():
    choice = ask(a_snapshot(a_node("a")), a_shape()).choices[0]
    assert choice.fragmentation_before is None
    assert choice.stranded_delta_milligpu == 0


def test_an_empty_cluster_refuses():
    advice = ask(a_snapshot(), a_shape())
    assert (advice.feasible, advice.blockers, advice.choices) == (False, {}, ())


def test_cpu_only_requests_go_to_nodes_with_cpu():
    snapshot = a_snapshot(a_node("c", 0, cpu_allocatable_millicores=8000), a_node("g", 1), arrivals=MIX)
    advice = ask(snapshot, a_shape(0, cpu=10_000))
    assert [choice.assignments[0].node for choice in advice.choices] == ["g"]
    assert advice.choices[0].assignments[0].gpus == ()
    assert advice.blockers == {"cpu_lacking": 1}


BAD = {
    "no members": {"shape": a_shape(), "members": 0},
    "too many members": {"shape": a_shape(), "members": 10**9},
    "no choices": {"shape": a_shape(), "top": 0},
    "negative devices": {"shape": a_shape(-1)},
    "negative CPU": {"shape": a_shape(cpu=-1)},
    "negative memory": {"shape": a_shape(memory_bytes=-1)},
    "share of several": {"shape": a_shape(2, milligpu=500)},
    "share of a slice": {"shape": a_shape(1, milligpu=500, mig_profile="1g.10gb")},
    "no share": {"shape": a_shape(1, milligpu=0)},
    "more than a device": {"shape": a_shape(1, milligpu=1001)},
    "nothing": {"shape": a_shape(0, cpu=0)},
    "no instances": {"shape": a_shape(0, mig_profile="1g.10gb")},
}


@pytest.mark.parametrize("fields", BAD.values(), ids=BAD)
def test_requests_without_sense_are_refused(fields):
    with pytest.raises(InputError, match="cannot be answered"):
        ask(a_snapshot(a_node("a")), **fields)


def test_an_unknown_policy_is_refused():
    with pytest.raises(SettingsError, match="lucky"):
        ask(a_snapshot(a_node("a")), a_shape(), policy="lucky")
