"""The nearest change of a request: which one is told, and that it is true."""

from __future__ import annotations

import random

import pytest

from gpuwatch.fit.booking import book
from gpuwatch.model.mix import DemandMix
from gpuwatch.model.placement import NO_SINGLE_CHANGE, PlacementRequest
from gpuwatch.model.units import GIB
from gpuwatch.placement.what_if.nearest_fix import nearest_fix
from gpuwatch.placement.what_if.question import Question
from tests.builders import a_job, a_node, a_shape, a_snapshot
from tests.placement.random_clusters import some_cluster, some_shape

CLUSTER = a_snapshot(
    a_node("a", 4), a_node("t", 2, model="T4"), a_node("u", 2, model="T4"), jobs=[a_job("x", "a", [0, 1, 2])]
)


def question_of(snapshot):
    return Question(book(snapshot), DemandMix())


FIXES = {
    "another model": (a_shape(2, gpu_models=("H100-80",)), 1, "accept T4 too: fits on 2 nodes"),
    "less CPU": (a_shape(2, cpu=64_500), 1, "ask for 24 CPUs instead of 64.5: fits on 2 nodes"),
    "less memory": (a_shape(2, memory_bytes=300 * GIB), 1, "ask for 200 GiB of memory instead of 300: fits on 2 nodes"),
    "split": (a_shape(4), 1, "ask for 2 members of 2 GPUs instead of 1 of 4: fits on 2 nodes"),
    "fewer devices": (a_shape(7), 1, "ask for 2 GPUs instead of 7: fits on 2 nodes"),
    # Nine single devices would be too many as well, so the members are what has to give.
    "fewer members": (a_shape(2), 9, "ask for 2 members instead of 9: fits on 2 nodes"),
    "no other way": (a_shape(1, gpu_models=("B200",), cpu=10**9), 1, NO_SINGLE_CHANGE),
}


@pytest.mark.parametrize(("shape", "members", "told"), FIXES.values(), ids=FIXES)
def test_the_cheapest_change_is_told(shape, members, told):
    assert nearest_fix(question_of(CLUSTER), PlacementRequest(shape=shape, members=members)) == told


def test_a_smaller_share():
    half = a_job("h", "n", [0], shape=a_shape(1, milligpu=540))
    question = question_of(a_snapshot(a_node("n", 1), jobs=[half]))
    told = nearest_fix(question, PlacementRequest(shape=a_shape(1)))
    assert told == "ask for 0.46 of a GPU instead of 1: fits on 1 node"


def test_a_rack_takes_as_members_what_no_node_takes_alone():
    rack = [a_node(f"r{i:02}", 4, model="GB200", nvlink_domain="rack") for i in range(18)]
    told = nearest_fix(question_of(a_snapshot(*rack)), PlacementRequest(shape=a_shape(68), same_nvlink_domain=True))
    assert told == "ask for 17 members of 4 GPUs instead of 1 of 68: fits on 18 nodes"


@pytest.mark.parametrize(
    "shape", [a_shape(10**12), a_shape(1, cpu=10**30), a_shape(1, memory_bytes=10**30), a_shape(10**30)]
)
def test_absurd_requests_are_answered_at_once(shape):
    told = nearest_fix(question_of(CLUSTER), PlacementRequest(shape=shape))
    assert ": fits on " in told


def test_nothing_helps_where_nothing_is():
    assert nearest_fix(question_of(a_snapshot()), PlacementRequest(shape=a_shape())) == NO_SINGLE_CHANGE


@pytest.mark.parametrize("seed", range(40))
def test_it_never_breaks_and_never_fixes_what_fits(seed):
    question = question_of(some_cluster(seed))
    rng = random.Random(seed)
    for _ in range(5):
        request = PlacementRequest(shape=some_shape(rng), members=rng.randint(1, 6), same_nvlink_domain=True)
        told = nearest_fix(question, request)
        assert told.startswith(NO_SINGLE_CHANGE) or ": fits on " in told
