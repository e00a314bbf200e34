"""Why nodes cannot take a request, one cause for each node."""

from __future__ import annotations

import numpy as np

from gpuwatch.fit.columns import BoolArray
from gpuwatch.model.placement import PlacementRequest
from gpuwatch.placement.what_if.question import Field, Question
from gpuwatch.placement.what_if.request import wants_domain

NO_NVLINK = "no_nvlink"
NVLINK_DOMAIN = "nvlink_domain"
NVLINK_GENERATIONS = "nvlink_generations"
REPARTITION = "mig_repartition_needed"


def blockers(question: Question, fields: list[Field], request: PlacementRequest) -> dict[str, int]:
    """Cause -> nodes where not even one member fits, or that NVLink keeps from the others; most nodes first."""
    shape = request.shape
    frozen, accepted = question.read(request)
    lacking = frozen.capacity.device_room(accepted.shape) == 0
    if accepted.none:
        lacking = np.ones_like(lacking)
    left = np.ones_like(lacking)
    counts: dict[str, int] = {}
    for cause, here in question.blocking.charged(shape, lacking, question.cards.tests(request)):
        left &= ~here
        _count(question, counts, cause, here, request)
    if wants_domain(request):
        left &= ~np.logical_or.reduce([field.rows for field in fields], axis=0) if fields else True
        for cause, here in _nvlink(question, request, left):
            _count(question, counts, cause, here, request)
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def _count(question: Question, counts: dict[str, int], cause: str, here: BoolArray, request: PlacementRequest) -> None:
    total = int(here.sum())
    if total and cause in ("mig_profile", "mig_busy"):
        enough = here & (question.repartition.instances(request.shape) >= request.shape.gpus)
        could = int(enough.sum())
        total -= could
        if could:
            counts[REPARTITION] = counts.get(REPARTITION, 0) + could
    if total:
        counts[cause] = total


def _nvlink(question: Question, request: PlacementRequest, left: BoolArray) -> list[tuple[str, BoolArray]]:
    """Of nodes that take one member: no card with NVLink; a domain that only mixed generations would fill; no
    domain of any sort."""
    frozen, accepted = question.read(request)
    joined = [shape for shape, _ in question.by_generation(frozen, accepted)]
    models = tuple(sorted({name for shape in joined for name in shape.gpu_models}))
    able = np.zeros_like(left)
    for shape in joined:
        able |= question.generations.on_node(shape.gpu_models) if shape.gpu_models else question.generations.nameless
    mixed = np.zeros_like(left)
    if models:
        room = question.room_of(frozen, accepted.shape, models)
        mixed = question.per_domain(room) >= request.members
    return [
        (NO_NVLINK, left & ~able),
        (NVLINK_GENERATIONS, left & able & mixed),
        (NVLINK_DOMAIN, left & able & ~mixed),
    ]
