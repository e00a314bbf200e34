"""The event loop through numba: compiled once for all policies, which it reaches through a pointer."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from gpuwatch.fit.columns import IntArray
from gpuwatch.placement.churn.cluster import Operations, ScalarCluster, scalar_operations
from gpuwatch.placement.churn.course import Course
from gpuwatch.placement.churn.loop import run
from gpuwatch.placement.kernels import jit


def run_compiled(score: Callable[..., Any], cluster: ScalarCluster, course: Course, order: IntArray) -> None:
    """loop.run() under the policy whose kernel `score` is."""
    import numba
    from numba import types

    if jit.switched_off():  # somebody looks for a fault: the same loop, interpreted
        run(*scalar_operations(score), cluster, course, order)
        return
    typeof: Any = numba.typeof  # the stubs know no type of it
    cluster_type = typeof(cluster)
    finds = types.int64(cluster_type, types.int64, types.int64)
    operations = _operations(score, finds)
    own = [types.FunctionType(finds), *map(typeof, operations[1:])]
    signature = types.void(*own, cluster_type, typeof(course), typeof(order))
    jit.compiled(run, signature)(*operations, cluster, course, order)


@cache
def _operations(score: Callable[..., Any], finds: Any) -> Operations:
    find, *others = scalar_operations(jit.compiled(score))
    return Operations(jit.compiled(find, finds), *map(jit.compiled, others))
