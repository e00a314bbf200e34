"""Capacity counts once what fleet_fit counts for every shape anew: equal answers on random clusters."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from gpuwatch.fit.booking import book
from gpuwatch.fit.capacity import Capacity
from gpuwatch.fit.columns import columns_of
from gpuwatch.fit.fleet_fit import members_that_fit
from tests.builders import a_shape
from tests.placement.random_clusters import some_cluster, some_shape


@pytest.mark.parametrize("seed", range(40))
def test_members_are_those_of_fleet_fit(seed):
    rng = random.Random(seed)
    columns = columns_of(book(some_cluster(seed)))
    capacity = Capacity(columns)
    odd = [a_shape(2, milligpu=250), a_shape(3, milligpu=500), a_shape(0, cpu=0), a_shape(10**12), a_shape(cpu=10**30)]
    for shape in (*(some_shape(rng) for _ in range(40)), *odd):
        assert capacity.members(shape).tolist() == members_that_fit(columns, shape).tolist(), shape.label
        assert capacity.members(shape).tolist() == members_that_fit(columns, shape).tolist(), "the second time"


@pytest.mark.parametrize("seed", range(20))
def test_devices_left_out_are_not_there(seed):
    rng = random.Random(seed)
    columns = columns_of(book(some_cluster(seed)))
    kept = np.array([[rng.random() < 0.6 for _ in row] for row in columns.left])
    without = replace(columns.only(kept), left=np.where(kept, columns.left, 0))
    capacity = Capacity(columns, kept)
    for shape in (some_shape(rng) for _ in range(30)):
        assert capacity.members(shape).tolist() == members_that_fit(without, shape).tolist(), shape.label
