"""The what-if that keeps things against the plain one that keeps nothing: equal answers on small random clusters."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from gpuwatch.demand.mix import demand_mix
from gpuwatch.fit.booking import book
from gpuwatch.model.jobs import ShapeCount
from gpuwatch.model.placement import PRECISIONS, PURPOSES, ModelSize, PlacementRequest
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.model.units import GIB
from gpuwatch.placement.policy import POLICIES, PolicyContext, make_policy
from gpuwatch.placement.what_if.answer import WhatIf
from gpuwatch.placement.what_if.nearest_fix import nearest_fix
from gpuwatch.placement.what_if.question import Question
from tests.builders import a_shape
from tests.fragmentation.arrays import table_of_tasks
from tests.placement.random_clusters import some_cluster, some_shape
from tests.reference.what_if import PlainWhatIf

CARDS = ("A100-80", "H100-80", "H200-141", "B200", "H20", "T4", "Mystery 9", None)
MIX = tuple(
    ShapeCount(shape=a_shape(gpus, milligpu=share), count=count)
    for gpus, share, count in ((1, 1000, 9), (1, 460, 5), (2, 1000, 4), (4, 1000, 2), (8, 1000, 1), (0, 1000, 3))
)
LOCAL = [name for name in POLICIES.ids() if make_policy(name, PolicyContext(mix=table_of_tasks([]))).local]


def some_world(rng: random.Random, seed: int) -> ClusterSnapshot:
    """A random cluster with more cards, in odd company, some of measured memory and some of unknown."""
    cluster = some_cluster(seed)
    nodes = []
    for node in cluster.nodes:
        usual, mixed = rng.choice(CARDS), rng.random() < 0.3
        gpus = tuple(
            replace(
                gpu,
                model=rng.choice(CARDS) if mixed else usual,
                memory_total_bytes=rng.choice((None, None, None, 40 * GIB, 141 * GIB)) if rng.random() < 0.4 else None,
            )
            for gpu in node.gpus
        )
        nodes.append(replace(node, gpus=gpus))
    return replace(cluster, nodes=tuple(nodes), arrivals=MIX)


def some_request(rng: random.Random) -> PlacementRequest:
    shape = replace(
        some_shape(rng), gpu_models=tuple(sorted(rng.sample([c for c in CARDS if c], rng.choice((0, 0, 3)))))
    )
    if not (shape.gpus or shape.cpu_millicores or shape.memory_bytes):
        shape = replace(shape, gpus=1)
    memory, model, choose = None, None, False
    kind = rng.random() if shape.gpus and not shape.mig_profile else 1
    if kind < 0.3:
        memory = rng.choice((8, 39, 60, 81, 100, 140, 170)) * GIB
    elif kind < 0.6:
        size = rng.choice((1, 7, 13, 34, 70, 180)) * 10**9
        model = ModelSize(parameters=size, precision=rng.choice(PRECISIONS), purpose=rng.choice(PURPOSES))
        choose = shape.milligpu_per_gpu == 1000 and rng.random() < 0.5
    return PlacementRequest(
        shape=shape,
        members=rng.choice((1, 1, 2, 3, 5)),
        policy=rng.choice(LOCAL),
        same_nvlink_domain=rng.random() < 0.4,
        top=rng.choice((1, 3, 5)),
        gpu_memory_bytes=memory,
        model=model,
        choose_gpus=choose,
    )


@pytest.mark.parametrize("seed", range(80))
def test_answers_are_those_of_the_plain_way(seed):
    rng = random.Random(seed)
    snapshot = some_world(rng, seed)
    booking, mix = book(snapshot), demand_mix(snapshot, AnalysisSettings())
    keeping, plain = WhatIf(booking, mix), PlainWhatIf(booking, mix)
    for _ in range(6):
        request = some_request(rng)
        for _ in range(2):  # the second time from what was kept
            found, wanted = keeping.answer(request, "plain"), plain.answer(request)
            assert found.feasible == wanted.feasible, request
            assert [each.assignments for each in found.choices] == [each.assignments for each in wanted.choices], (
                request
            )
            for ours, theirs in zip(found.choices, wanted.choices, strict=True):
                assert ours.fragmentation_before == pytest.approx(theirs.fragmentation_before)
                assert ours.fragmentation_after == pytest.approx(theirs.fragmentation_after)
                assert ours.stranded_delta_milligpu == pytest.approx(theirs.stranded_delta_milligpu, abs=1e-6)
                assert ours.blocked_shapes == theirs.blocked_shapes
                assert ours.mixed_generations == theirs.mixed_generations
            blockers = dict(found.blockers)
            repartition = blockers.pop("mig_repartition_needed", 0)
            if request.shape.mig_profile:  # the plain way does not look at what could be cut anew
                assert sum(blockers.values()) + repartition == sum(wanted.blockers.values())
            else:
                assert found.blockers == wanted.blockers, request


class CountingPlainly(Question):
    """A question whose fitting nodes are counted the plain way."""

    def __init__(self, booking, mix):
        super().__init__(booking, mix)
        self._plain = PlainWhatIf(booking, mix)

    def fitting_nodes(self, request):
        return len(self._plain.rows(request))


@pytest.mark.parametrize("seed", range(30))
def test_the_nearest_fix_is_that_of_the_plain_way(seed):
    rng = random.Random(1000 + seed)
    snapshot = some_world(rng, seed)
    booking, mix = book(snapshot), demand_mix(snapshot, AnalysisSettings())
    keeping, plain = Question(booking, mix), CountingPlainly(booking, mix)
    for _ in range(4):
        request = replace(some_request(rng), choose_gpus=False)
        if not keeping.fields(request):
            assert nearest_fix(keeping, request) == nearest_fix(plain, request), request
