"""The policies against their plain twins on random nodes, and what each is known for."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpuwatch.fit.booking import book
from gpuwatch.fit.columns import Columns, columns_of
from gpuwatch.fit.fleet_fit import devices_fit, fits
from gpuwatch.placement.policy import ANY_DEVICE, POLICIES, PolicyContext
from tests.builders import a_gpu, a_job, a_node, a_shape, a_snapshot
from tests.fragmentation.arrays import table_of_tasks
from tests.reference.fragmentation import Device, Task
from tests.reference.placement import (
    best_fit_score,
    clustering_score,
    dot_product_score,
    fgd_score,
    least_allocated_score,
    most_allocated_score,
    packing_score,
)
from tests.reference.states import MODELS, shape_of, some_mix, some_node, some_task

ANY = PolicyContext(mix=table_of_tasks([(Task(1, 1000, 4000, ()), 1.0)]))


def columns_from(nodes: list[tuple[int, list[Device]]]) -> Columns:
    """Real columns in the given states, with every model known to the table so that codes agree."""
    every = a_node("models", [a_gpu(i, model) for i, model in enumerate(MODELS)])
    built = [
        a_node(f"n{at}", [a_gpu(i, d.model) for i, d in enumerate(devices)], cpu_allocatable_millicores=cpu)
        for at, (cpu, devices) in enumerate(nodes)
    ]
    columns = columns_of(book(a_snapshot(*built, every)))
    assert columns.models == MODELS
    for row, (_, devices) in enumerate(nodes):
        columns.left[row, : len(devices)] = [device.left for device in devices]
    return columns


@pytest.mark.parametrize("seed", range(20))
def test_scores_agree_with_the_twins(seed):
    rng = random.Random(seed)
    nodes, mix = [some_node(rng) for _ in range(60)], some_mix(rng)
    columns = columns_from(nodes)
    context = PolicyContext(mix=table_of_tasks(mix), seed=seed)
    for _ in range(5):
        task = some_task(rng)
        shape = shape_of(task)
        ok = devices_fit(columns, shape)[: len(nodes)] & (columns.cpu_free[: len(nodes)] >= task.cpu)
        rows = np.flatnonzero(ok)
        best_fit = POLICIES.get("best_fit")(context).rank(columns, shape, rows, 0)
        fgd = POLICIES.get("fgd")(context).rank(columns, shape, rows, 0)
        dot = POLICIES.get("dot_product")(context).rank(columns, shape, rows, 0)
        packing = POLICIES.get("gpu_packing")(context).rank(columns, shape, rows, 0)
        most = POLICIES.get("k8s_most_allocated")(context).rank(columns, shape, rows, 0)
        for at, row in enumerate(rows):
            assert (best_fit.score[at], best_fit.device[at]) == best_fit_score(*nodes[row], task)
            assert (fgd.score[at], fgd.device[at]) == fgd_score(*nodes[row], task, mix)
            assert (dot.score[at], dot.device[at]) == dot_product_score(*nodes[row], task)
            assert (packing.score[at], packing.device[at]) == packing_score(nodes[row][1], task)
            assert (most.score[at], most.device[at]) == most_allocated_score(nodes[row][1], task)


@pytest.mark.parametrize("seed", range(20))
def test_clustering_and_least_allocated_agree_with_the_twins(seed):
    rng = random.Random(seed)
    nodes = [some_node(rng) for _ in range(40)]
    columns = columns_from(nodes)
    columns.running[:] = 0
    running = [{size: rng.randint(0, 1) for size in ("share", "1", "2", "8")} for _ in nodes]
    for row, counts in enumerate(running):
        for size, count in counts.items():
            columns.running[row, 0 if size == "share" else int(size)] = count
    memory = [rng.randint(1, 2**40) for _ in nodes]
    for row, (cpu, _) in enumerate(nodes):
        columns.cpu_capacity[row], columns.memory_capacity[row] = cpu + 32_000, memory[row]
        columns.memory_free[row] = rng.randint(0, memory[row])
    for _ in range(5):
        task = some_task(rng)
        shape = replace(shape_of(task), memory_bytes=rng.randint(0, 2**20))
        ok = fits(columns, shape)[: len(nodes)]
        rows = np.flatnonzero(ok)
        clustering = POLICIES.get("gpu_clustering")(ANY).rank(columns, shape, rows, 0)
        least = POLICIES.get("k8s_least_allocated")(ANY).rank(columns, shape, rows, 0)
        for at, row in enumerate(rows):
            cpu, devices = nodes[row]
            expected = clustering_score(devices, task, running[row])
            assert (clustering.score[at], clustering.device[at]) == expected
            over = (cpu - task.cpu, cpu + 32_000), (int(columns.memory_free[row]) - shape.memory_bytes, memory[row])
            assert (least.score[at], least.device[at]) == least_allocated_score(*over, devices, task)


def test_random_reaches_every_node_and_device_about_equally_often():
    columns = columns_of(book(a_snapshot(*[a_node(f"n{at}", 2) for at in range(4)])))
    policy = POLICIES.get("random")(PolicyContext(mix=ANY.mix, seed=3))
    nodes, devices = [0] * 4, [0] * 2
    for draw in range(4000):
        ranking = policy.rank(columns, a_shape(1, milligpu=500), np.arange(4), draw)
        best = int(ranking.score.argmax())
        nodes[best] += 1
        devices[int(ranking.device[best])] += 1
    assert min(nodes) > 900
    assert min(devices) > 1900


def test_all_are_registered_and_take_no_rows():
    assert {"best_fit", "fgd"} <= set(POLICIES.ids())
    columns = columns_of(book(a_snapshot(a_node("a"))))
    for name in POLICIES.ids():
        ranking = POLICIES.get(name)(ANY).rank(columns, a_shape(), np.array([], dtype=np.int64), 0)
        assert len(ranking.score) == len(ranking.device) == 0


def test_every_policy_has_its_page():
    pages = Path(__file__).parents[2] / "docs" / "policies"
    assert [name for name in POLICIES.ids() if not (pages / f"{name}.md").is_file()] == []


def test_best_fit_shares_the_fullest_device_with_room():
    lent = [a_job(f"j{i}", "a", [i], shape=a_shape(1, milligpu=m)) for i, m in enumerate((300, 600, 900))]
    columns = columns_of(book(a_snapshot(a_node("a", 4), jobs=lent)))
    ranking = POLICIES.get("best_fit")(ANY).rank(columns, a_shape(1, milligpu=250), np.array([0]), 0)
    assert ranking.device.tolist() == [1]


def test_best_fit_judges_by_devices_where_cpu_is_unknown():
    nodes = a_node("a", 4, cpu_allocatable_millicores=None), a_node("b", 2, cpu_allocatable_millicores=None)
    columns = columns_of(book(a_snapshot(*nodes)))
    ranking = POLICIES.get("best_fit")(ANY).rank(columns, a_shape(2), np.array([0, 1]), 0)
    assert ranking.score[1] > ranking.score[0]
    assert ranking.device.tolist() == [ANY_DEVICE, ANY_DEVICE]


def test_fgd_spares_the_whole_device_that_the_mix_wants():
    half = a_job("h", "a", [1], shape=a_shape(1, milligpu=500))
    columns = columns_of(book(a_snapshot(a_node("a", 2), jobs=[half])))
    ranking = POLICIES.get("fgd")(ANY).rank(columns, a_shape(1, milligpu=500), np.array([0]), 0)
    assert ranking.device.tolist() == [1]


def test_a_share_of_no_device_means_nothing_to_fgd():
    """Hand-written snapshots hold any whole number, also where it has no meaning."""
    columns = columns_of(book(a_snapshot(a_node("a", 2), a_node("b", 4))))
    policy = POLICIES.get("fgd")(ANY)
    plain, absurd = (policy.rank(columns, a_shape(0, milligpu=m), np.arange(2), 0) for m in (1000, -(10**30)))
    assert absurd.score.tolist() == plain.score.tolist()
