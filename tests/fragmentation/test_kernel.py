"""The kernel against published values and against its twin on 10,000 random states."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from gpuwatch.fragmentation.general import CAUSES, fragment_by_cause
from gpuwatch.fragmentation.kernel import (
    fragment_of_nodes,
    fragment_per_shape,
)
from tests.fragmentation.arrays import arrays, table_of_tasks
from tests.reference.fragmentation import Device, Task, expected_fragment, fragment
from tests.reference.states import some_mix, some_node

KNOWN = json.loads((Path(__file__).parent / "data" / "known_answers.json").read_text(encoding="utf-8"))
KNOWN_MODELS = ("1080", "2080", "P100", "T4", "V100M16")


def known_mix(name: str) -> list[tuple[Task, float]]:
    return [
        (
            Task(
                gpus=entry["gpus"],
                share=entry["milligpu_per_gpu"],
                cpu=entry["cpu_millicores"],
                models=(entry["gpu_model"],) if entry["gpu_model"] else (),
            ),
            entry["share"],
        )
        for entry in KNOWN["mixes"][name]
    ]


@pytest.mark.parametrize("node", KNOWN["nodes"], ids=lambda node: node["name"])
def test_published_values(node):
    devices = [Device(node["gpu_model"], left) for left in node["free_milligpu"]]
    state = arrays([(node["cpu_free_millicores"], devices)], KNOWN_MODELS)
    mix = known_mix(node["mix"])
    found = fragment_of_nodes(table_of_tasks(mix, KNOWN_MODELS), *state)
    assert found[0] == pytest.approx(node["fragment_milligpu"], abs=KNOWN["tolerance_milligpu"])
    twin = expected_fragment(node["cpu_free_millicores"], devices, mix)
    assert twin == pytest.approx(node["fragment_milligpu"], abs=KNOWN["tolerance_milligpu"])


@pytest.mark.parametrize("seed", range(50))
def test_agrees_with_the_twin(seed):
    """50 mixes on 200 states each."""
    rng = random.Random(seed)
    mix, nodes = some_mix(rng), [some_node(rng) for _ in range(200)]
    table, state = table_of_tasks(mix), arrays(nodes)
    totals = fragment_of_nodes(table, *state)
    by_cause = {cause: part.sum(axis=1) for cause, part in fragment_by_cause(table, *state).items()}
    for row, (cpu, devices) in enumerate(nodes):
        assert totals[row] == pytest.approx(expected_fragment(cpu, devices, mix), abs=1e-6)
        for cause in CAUSES:
            twin = sum(share * fragment(cpu, devices, task)[cause] for task, share in mix)
            assert by_cause[cause][row] == pytest.approx(twin, abs=1e-6)
    unweighted = fragment_per_shape(table, *state)
    with_gpus = [task for task, _ in mix if task.gpus]
    twins = [sum(sum(fragment(cpu, devices, task).values()) for cpu, devices in nodes) for task in with_gpus]
    np.testing.assert_allclose(unweighted, twins, atol=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_classes_add_up_to_the_published_total(seed):
    rng = random.Random(1000 + seed)
    mix, nodes = some_mix(rng), [some_node(rng) for _ in range(50)]
    table, state = table_of_tasks(mix), arrays(nodes)
    cpu_only = state[0].sum(axis=1) * table.cpu_only_weight
    parts = sum(part.sum(axis=1) for part in fragment_by_cause(table, *state).values())
    np.testing.assert_allclose(parts + cpu_only, fragment_of_nodes(table, *state), atol=1e-6)


def test_a_mix_without_gpus_leaves_only_the_cpu_only_class():
    table = table_of_tasks([(Task(gpus=0, share=1000, cpu=1000, models=()), 0.25)])
    state = arrays([(4000, [Device("T4", 1000), Device("T4", 400)])])
    assert fragment_of_nodes(table, *state).tolist() == [350.0]
    assert all(part.sum() == 0 for part in fragment_by_cause(table, *state).values())
    assert fragment_per_shape(table, *state).shape == (0,)
