"""A what-if and its answer: what is asked for, where it would go, and what keeps it out."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.values import value

Precision = Literal["fp16", "bf16", "fp8", "fp4"]
Purpose = Literal["training", "inference"]
PRECISIONS: tuple[Precision, ...] = ("fp16", "bf16", "fp8", "fp4")
PURPOSES: tuple[Purpose, ...] = ("training", "inference")
NO_SINGLE_CHANGE = "no single change of the request makes it fit"


@value
class ModelSize:
    """A neural network that the job loads, from which the GPU memory that it needs is estimated."""

    parameters: int
    precision: Precision = "fp16"
    purpose: Purpose = "inference"


@value
class PlacementRequest:
    """A what-if: `members` members of one shape, on devices with enough memory where that is asked for.

    gpu_memory_bytes: what each device must have; for a share of a device, what the share must have. model: the need is
    estimated instead, and spread evenly over all devices of all members. choose_gpus: shape.gpus is left open, and the
    smallest of 1, 2, 4 and 8 GPUs per member is taken with which the model fits.
    """

    shape: DemandShape
    members: int = 1
    policy: str = "fgd"
    same_nvlink_domain: bool = False
    top: int = 5
    gpu_memory_bytes: int | None = None
    model: ModelSize | None = None
    choose_gpus: bool = False


@value
class Assignment:
    """Where one member would go."""

    node: str
    pool: str
    gpu_model: str | None
    gpus: tuple[int, ...]


@value
class PlacementChoice:
    """One way to place every member, with the cluster's index before and after (None: nothing free then)."""

    rank: int
    assignments: tuple[Assignment, ...]
    fragmentation_before: float | None
    fragmentation_after: float | None
    stranded_delta_milligpu: float
    blocked_shapes: tuple[str, ...] = ()  # shapes that fitted before and would fit nowhere after
    mixed_generations: tuple[str, ...] = ()  # named when the members get cards of more than one


@value
class GpuCountOption:
    """What one number of GPUs per member would mean for a model."""

    gpus: int
    gpu_memory_bytes: int  # need of each device
    gpu_models: tuple[str, ...]  # cards of this cluster with that much memory and the precision
    nodes: int  # that could take part; 0: it does not fit


@value
class GpuMemoryNeed:
    """What each device must have, what that rests on, and which cards it leaves."""

    gpus: int  # of one member, which the rest is told for
    gpu_memory_bytes: int  # for the job, on each
    device_memory_bytes: int | None = None  # in all, where the job takes a share of the device alone
    total_bytes: int | None = None  # of the model on all devices; None: the need was given, not estimated
    parts: dict[str, int] = field(default_factory=dict)  # weights, gradients ... -> bytes; they sum to total_bytes
    formula: str | None = None
    assumptions: tuple[str, ...] = ()
    preferred_models: tuple[
        str, ...
    ] = ()  # cards that such a need should go to, first choice first; (): none is made for it
    excluded: dict[str, str] = field(default_factory=dict)  # card of this cluster -> why it is not accepted
    options: tuple[GpuCountOption, ...] = ()  # when the number of GPUs was left open


@value
class PlacementAdvice:
    """Ranked choices, or why no node can take the request."""

    evaluation_id: str
    policy: str
    feasible: bool
    choices: tuple[PlacementChoice, ...] = ()
    blockers: dict[str, int] = field(default_factory=dict)  # cause -> nodes; every node without a fit counts once
    fits_by_sum_not_by_shape: bool = False
    nearest_fix: str | None = None  # the cheapest change that would make it fit, or NO_SINGLE_CHANGE; None: it fits
    gpu_memory: GpuMemoryNeed | None = None  # None: no GPU memory was asked for
