"""The cheapest single change of a request that would make it fit.

Changes are tried in the order of what they cost the asker: first those that keep all devices, then other numbers of
devices or less of each, then fewer members. Amounts are the largest that fit.
"""

from __future__ import annotations

import numpy as np

from gpuwatch.model.placement import NO_SINGLE_CHANGE, PlacementRequest
from gpuwatch.placement.what_if.changes import KEEPING, YIELDING, Changes
from gpuwatch.placement.what_if.question import Question


def nearest_fix(question: Question, request: PlacementRequest) -> str:
    """One line for people, such as "ask for 8 CPUs instead of 64: fits on 2 nodes"."""
    told = _first(question, request, KEEPING) or _by_repartition(question, request)
    return told or _first(question, request, YIELDING) or NO_SINGLE_CHANGE


def _first(question: Question, request: PlacementRequest, kinds: tuple[Changes, ...]) -> str | None:
    for changes in kinds:
        for text, changed in changes(question, request):
            nodes = question.fitting_nodes(changed)
            if nodes:
                return f"{text}: fits on {_nodes(nodes)}"
    return None


def _by_repartition(question: Question, request: PlacementRequest) -> str | None:
    """No change of the request: nothing is given up, but an operator has to cut idle slices, or free GPUs, anew."""
    shape = request.shape
    if not shape.mig_profile:
        return None
    for told, instances in (
        ("repartition idle slices", question.repartition.instances),
        ("switch free GPUs to MIG mode", question.repartition.after_switching),
    ):
        room = question.frozen.capacity.beside(instances(shape) // shape.gpus, shape)
        room = np.where(question.columns.open, room, 0)
        if int(room.sum()) >= request.members:
            return f"{told} (gpuwatch mig plan): fits on {_nodes(int((room > 0).sum()))}"
    return None


def _nodes(count: int) -> str:
    return f"{count} node{'s' if count > 1 else ''}"
