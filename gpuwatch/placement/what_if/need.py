"""The GPU memory that each device must have for a request, and what is told about it."""

from __future__ import annotations

from dataclasses import replace

from gpuwatch.fit.gpu_memory import GPU_COUNTS, Estimate, estimate, made_for
from gpuwatch.model.placement import GpuCountOption, GpuMemoryNeed, PlacementRequest
from gpuwatch.model.units import MILLI


def need_of(request: PlacementRequest) -> int | None:
    """Bytes that a device must have in all; None when no GPU memory is asked for.

    A share of a device is counted as having that share of its memory, which is what every way of sharing can promise.
    """
    each = asked_bytes(request)
    return None if each is None else -(-each * MILLI // max(1, request.shape.milligpu_per_gpu))


def asked_bytes(request: PlacementRequest) -> int | None:
    """Bytes that a member needs on each of its devices, or on its share of one."""
    if request.model is None:
        return request.gpu_memory_bytes
    return -(-estimated(request).total_bytes // max(1, request.members * request.shape.gpus))


def estimated(request: PlacementRequest) -> Estimate:
    """The estimate behind a request that names a model."""
    assert request.model is not None
    return estimate(request.model)


def counts_to_try(request: PlacementRequest) -> list[PlacementRequest]:
    """The request with each number of GPUs that may be chosen, fewest first; itself alone when the number is set."""
    if not request.choose_gpus:
        return [request]
    return [replace(request, shape=replace(request.shape, gpus=gpus), choose_gpus=False) for gpus in GPU_COUNTS]


def memory_need(
    request: PlacementRequest, excluded: dict[str, str], options: tuple[GpuCountOption, ...]
) -> GpuMemoryNeed:
    """What is told about the memory of a request that asks for some."""
    need, each = need_of(request), asked_bytes(request)
    assert need is not None
    assert each is not None
    known = estimated(request) if request.model is not None else None
    precision = request.model.precision if request.model is not None else None
    return GpuMemoryNeed(
        gpus=request.shape.gpus,
        gpu_memory_bytes=each,
        device_memory_bytes=need if need > each else None,
        total_bytes=known.total_bytes if known else None,
        parts=known.parts if known else {},
        formula=known.formula if known else None,
        assumptions=known.assumptions if known else (),
        preferred_models=made_for(need, light_inference(request), precision),
        excluded=excluded,
        options=options,
    )


def light_inference(request: PlacementRequest) -> bool:
    """Serving on one device alone."""
    serving = request.model is not None and request.model.purpose == "inference"
    return serving and request.members * request.shape.gpus == 1
