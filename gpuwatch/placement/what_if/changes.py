"""Ways to change a request that does not fit, and the largest amounts with which each would.

Amounts are searched: less of anything never fits worse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from gpuwatch.fit.gpu_memory import GPU_COUNTS
from gpuwatch.model.placement import PRECISIONS, PlacementRequest
from gpuwatch.model.units import GIB, MILLI, gib, gpus
from gpuwatch.placement.what_if.need import asked_bytes
from gpuwatch.placement.what_if.question import Question
from gpuwatch.placement.what_if.request import MAX_MEMBERS

Change = tuple[str, PlacementRequest]  # what is changed, in words, and the request then
Changes = Callable[[Question, PlacementRequest], Iterator[Change]]


def _any_domain(question: Question, request: PlacementRequest) -> Iterator[Change]:
    if request.same_nvlink_domain:
        yield "do without one NVLink domain", replace(request, same_nvlink_domain=False)


def _more_models(question: Question, request: PlacementRequest) -> Iterator[Change]:
    accepted = request.shape.gpu_models
    if not accepted or request.shape.mig_profile:
        return
    others = [model for model in question.columns.models if model not in accepted]
    widened = [(m, _with_shape(request, gpu_models=tuple(sorted((*accepted, m))))) for m in others]
    # The model with most nodes to choose from first; equal ones by name.
    for model, changed in sorted(widened, key=lambda pair: (-question.fitting_nodes(pair[1]), pair[0])):
        yield f"accept {model} too", changed


def _narrower(question: Question, request: PlacementRequest) -> Iterator[Change]:
    model = request.model
    if model is None:
        return
    for precision in PRECISIONS[PRECISIONS.index(model.precision) + 1 :]:
        changed = replace(request, model=replace(model, precision=precision))
        if (asked_bytes(changed) or 0) < (asked_bytes(request) or 0):
            yield f"load the model in {precision} instead of {model.precision} ({_memory(changed)} per GPU)", changed


def _more_devices(question: Question, request: PlacementRequest) -> Iterator[Change]:
    if request.model is None or request.shape.milligpu_per_gpu != MILLI:
        return
    for count in GPU_COUNTS:
        if count > request.shape.gpus:
            changed = _with_shape(request, gpus=count)
            yield f"use {count} GPUs of {_memory(changed)} instead of {request.shape.gpus}", changed


def _less_gpu_memory(question: Question, request: PlacementRequest) -> Iterator[Change]:
    asked = request.gpu_memory_bytes
    if asked is None:
        return
    most = _largest(question, lambda units: replace(request, gpu_memory_bytes=units * GIB), -(-asked // GIB))
    if most:
        text = f"ask for {most} GiB of GPU memory instead of {asked / GIB:.4g}"
        yield text, replace(request, gpu_memory_bytes=most * GIB)


def _less_cpu(question: Question, request: PlacementRequest) -> Iterator[Change]:
    asked = request.shape.cpu_millicores
    whole = _largest(question, lambda cpu: _with_shape(request, cpu_millicores=cpu * MILLI), -(-asked // MILLI))
    below = min(asked, MILLI)
    cpu = whole * MILLI or _largest(question, lambda cpu: _with_shape(request, cpu_millicores=cpu), below)
    if cpu:
        yield f"ask for {gpus(cpu)} CPUs instead of {gpus(asked)}", _with_shape(request, cpu_millicores=cpu)


def _less_memory(question: Question, request: PlacementRequest) -> Iterator[Change]:
    asked = request.shape.memory_bytes
    most = _largest(question, lambda units: _with_shape(request, memory_bytes=units * GIB), -(-asked // GIB))
    if most:
        text = f"ask for {most} GiB of memory instead of {asked / GIB:.4g}"
        yield text, _with_shape(request, memory_bytes=most * GIB)


def _split(question: Question, request: PlacementRequest) -> Iterator[Change]:
    shape = request.shape
    widest = question.columns.left.shape[1]
    for each in range(min(shape.gpus - 1, widest), 0, -1):
        parts, rest = divmod(shape.gpus, each)
        members = request.members * parts
        if rest == 0 and members <= MAX_MEMBERS:
            smaller = replace(
                shape,
                gpus=each,
                cpu_millicores=-(-shape.cpu_millicores // parts),
                memory_bytes=-(-shape.memory_bytes // parts),
            )
            text = f"ask for {members} members of {each} {_devices(request, each)} instead of {request.members} of"
            yield f"{text} {shape.gpus}", replace(request, shape=smaller, members=members)


def _fewer_devices(question: Question, request: PlacementRequest) -> Iterator[Change]:
    if request.model is not None:  # it would need more of each, so that fewer are no smaller request
        return
    each = _largest(question, lambda count: _with_shape(request, gpus=count), request.shape.gpus)
    if each:
        text = f"ask for {each} {_devices(request, each)} instead of {request.shape.gpus}"
        yield text, _with_shape(request, gpus=each)


def _smaller_share(question: Question, request: PlacementRequest) -> Iterator[Change]:
    shape = request.shape
    if shape.gpus == 1 and not shape.mig_profile and asked_bytes(request) is None:
        most = _largest(question, lambda share: _with_shape(request, milligpu_per_gpu=share), shape.milligpu_per_gpu)
        if most:
            text = f"ask for {gpus(most)} of a GPU instead of {gpus(shape.milligpu_per_gpu)}"
            yield text, _with_shape(request, milligpu_per_gpu=most)


def _fewer_members(question: Question, request: PlacementRequest) -> Iterator[Change]:
    if request.model is not None:
        return
    most = _largest(question, lambda members: replace(request, members=members), request.members)
    if most:
        text = f"ask for {most} member{'s' if most > 1 else ''} instead of {request.members}"
        yield text, replace(request, members=most)


# The asker gives up nothing, or only where it runs ...
KEEPING: tuple[Changes, ...] = (_any_domain, _more_models)
# ... or gets less, or something else.
YIELDING: tuple[Changes, ...] = (
    _narrower,
    _less_cpu,
    _less_memory,
    _less_gpu_memory,
    _more_devices,
    _split,
    _fewer_devices,
    _smaller_share,
    _fewer_members,
)


def _largest(question: Question, changed: Callable[[int], PlacementRequest], below: int) -> int:
    """The largest amount in 1..below-1 with which the request fits, 0 when none does (less never fits worse)."""
    low, high = 0, below - 1
    while low < high:
        middle = (low + high + 1) // 2
        if question.fitting_nodes(changed(middle)):
            low = middle
        else:
            high = middle - 1
    return max(low, 0)


def _with_shape(request: PlacementRequest, **changes: Any) -> PlacementRequest:
    return replace(request, shape=replace(request.shape, **changes))


def _devices(request: PlacementRequest, count: int) -> str:
    return (request.shape.mig_profile or "GPU") + ("s" if count > 1 and not request.shape.mig_profile else "")


def _memory(request: PlacementRequest) -> str:
    return gib(asked_bytes(request) or 0)
