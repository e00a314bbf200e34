"""The look-up form against the general one: the very same numbers, whatever the order of sums."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gpuwatch.fragmentation import uniform
from gpuwatch.fragmentation.fragments import Fragments
from gpuwatch.fragmentation.general import CAUSES, fragment_by_cause
from gpuwatch.fragmentation.kernel import (
    cause_totals,
    fragment_of_nodes,
    fragment_per_shape,
)
from gpuwatch.fragmentation.uniform import lookup_of
from tests.fragmentation.arrays import arrays, table_of_tasks
from tests.placement.test_policies import columns_from
from tests.reference.fragmentation import Device, Task, expected_fragment
from tests.reference.states import MODELS, some_mix, some_node


def some_states(seed: int, count: int = 300):
    rng = random.Random(seed)
    return rng, some_mix(rng), [some_node(rng) for _ in range(count)]


@pytest.mark.parametrize("seed", range(20))
def test_both_forms_give_equal_numbers(seed, monkeypatch):
    _, mix, nodes = some_states(seed)
    state = arrays(nodes)
    looked_up = table_of_tasks(mix)
    assert (lookup_of(looked_up, state[0].shape[1]) is not None) == any(task.gpus for task, _ in mix)
    totals, shapes = fragment_of_nodes(looked_up, *state), fragment_per_shape(looked_up, *state)
    monkeypatch.setattr(uniform, "_LARGEST", 0)
    general = table_of_tasks(mix)
    assert lookup_of(general, state[0].shape[1]) is None
    assert totals.tolist() == fragment_of_nodes(general, *state).tolist()
    assert shapes.tolist() == fragment_per_shape(general, *state).tolist()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("largest", [2**21, 0])
def test_causes_add_up_by_cell(seed, largest, monkeypatch):
    monkeypatch.setattr(uniform, "_LARGEST", largest)
    rng, mix, nodes = some_states(seed)
    table, (left, model, cpu) = table_of_tasks(mix), arrays(nodes)
    pool = np.array([rng.randrange(3) for _ in nodes])
    cell = pool[:, None] * (len(MODELS) + 1) + np.where(model < 0, len(MODELS), model)
    cells = 3 * (len(MODELS) + 1)
    found = cause_totals(table, left, model, cpu, cell, cells)
    for at, part in enumerate(fragment_by_cause(table, left, model, cpu).values()):
        wanted = np.bincount(cell.ravel(), weights=part.ravel(), minlength=cells)
        np.testing.assert_allclose(found[at], wanted, atol=1e-6, err_msg=CAUSES[at])


@pytest.mark.parametrize("seed", range(20))
def test_one_member_more_is_what_the_twin_says(seed):
    rng, mix, nodes = some_states(seed, 60)
    columns = columns_from(nodes)
    table = table_of_tasks(mix)
    known = Fragments.of(table, columns, np.arange(len(nodes)))
    looked_up = lookup_of(table, columns.left.shape[1]) is not None
    for at, (cpu, devices) in enumerate(nodes):
        assert known.before[at] == expected_fragment(cpu, devices, mix)
        holding = {device.model for device in devices if device.left}
        assert known.uniform[at] == (looked_up and len(holding) <= 1)
        roomy = [i for i, device in enumerate(devices) if device.left >= 250]
        if known.uniform[at] and roomy:
            which = rng.choice(roomy)
            after = [Device(d.model, d.left - 250) if i == which else d for i, d in enumerate(devices)]
            found = known.after(np.array([at]), np.array([devices[which].left]), 250, 1, 1000)
            assert found[0] == expected_fragment(cpu - 1000, after, mix)


def test_a_shape_wider_than_any_node_and_one_of_no_share_are_no_trouble():
    devices = [Device("T4", 1000), Device("T4", 400)]
    wide = [(Task(10**6, 1000, 0, ()), 0.5), (Task(1, 1000, 0, ()), 0.5)]
    assert fragment_of_nodes(table_of_tasks(wide), *arrays([(1000, devices)])).tolist() == [700 + 200]
    nothing = table_of_tasks([(Task(1, 0, 0, ()), 1.0)])
    assert lookup_of(nothing, 2) is None
    assert fragment_of_nodes(nothing, *arrays([(1000, devices)])).tolist() == [0]
