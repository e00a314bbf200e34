"""F of nodes as they stand, kept, and as it would be with one member more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuwatch.fit.columns import BoolArray, Columns, FloatArray, IntArray, bounded
from gpuwatch.fragmentation import uniform
from gpuwatch.fragmentation.general import fragment_of_any, fragment_of_states
from gpuwatch.fragmentation.kernel import MixTable
from gpuwatch.fragmentation.uniform import Lookup, States, lookup_of, states_of


@dataclass(frozen=True, slots=True)
class Fragments:
    """The published F of R node states, and what it would be with one member more on nodes of one model."""

    before: FloatArray  # (R,)
    uniform: BoolArray  # (R,) nodes for which after() speaks
    _cpu_free: IntArray
    _whole: float
    _lookup: Lookup | None
    _states: States | None

    @classmethod
    def of(cls, table: MixTable, columns: Columns, rows: IntArray) -> Fragments:
        """The nodes `rows` (R,) as they stand."""
        left, model, cpu_free = columns.left[rows], columns.model[rows], columns.cpu_free[rows]
        lookup, whole = lookup_of(table, left.shape[1]), float(table.weight.sum()) + table.cpu_only_weight
        if lookup is None:
            nowhere = np.zeros(len(rows), dtype=np.bool_)
            return cls(fragment_of_any(table, left, model, cpu_free), nowhere, cpu_free, whole, None, None)
        states = states_of(lookup, left, model, cpu_free)
        before = fragment_of_states(table, lookup, states, left, model, cpu_free)
        return cls(before, states.uniform, cpu_free, whole, lookup, states)

    def after(self, at: IntArray, device: IntArray, taken: int, devices: int, cpu: int) -> FloatArray:
        """(P,) F of the nodes `at` (P,), all `uniform`, with `taken` milligpu of each of `devices` equal devices and
        `cpu` millicores given away; device: (P,) what each of these devices has left before."""
        assert self._lookup is not None
        assert self._states is not None
        left_over = self._cpu_free - bounded(cpu)
        return uniform.fragments_if(self._lookup, self._states, self._whole, at, device, taken, devices, left_over)
