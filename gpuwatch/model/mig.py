"""A plan of MIG layouts for a demand of profiles: what stays, what goes and what is made on each device."""

from __future__ import annotations

from dataclasses import field

from gpuwatch.model.values import value


@value
class MigAsk:
    """So many instances of one profile, on devices of some pools and models."""

    profile: str
    count: int
    together: int = 1  # so many of them at a time on one node
    pool: str | None = None  # None: any
    gpu_models: tuple[str, ...] = ()  # empty: any
    jobs: tuple[str, ...] = ()  # who waits for them, where the demand was read from a queue


@value
class MigSpot:
    """One instance of a layout. `start` None: nobody tells where it is, or the driver chooses."""

    profile: str
    start: int | None
    memory_slices: int
    id: str | None = None  # GPU instance id; None for one that is yet to be made
    held_by: tuple[str, ...] = ()  # jobs


@value
class DeviceLayout:
    """What the plan does to one device. `create` and `delete` both empty: its free instances serve as they are."""

    node: str
    pool: str
    gpu_index: int
    uuid: str | None
    gpu_model: str | None
    serves: dict[str, int]  # profile -> instances of the demand that come to this device
    keep: tuple[MigSpot, ...] = ()  # held ones, and idle ones that are in nobody's way
    delete: tuple[MigSpot, ...] = ()  # idle ones
    create: tuple[MigSpot, ...] = ()
    enable_mig: bool = False  # the device is not in MIG mode yet
    drain: tuple[str, ...] = ()  # jobs that hold the whole device and have to leave first
    was_free: bool = False  # nobody held any of it
    largest_before: str | None = None  # largest profile that fitted beside all its instances; None: none
    largest_after: str | None = None  # and that still does


@value
class AskAnswer:
    """How far one ask is met. `reason` says why not wholly."""

    ask: MigAsk
    ready: int  # served by instances that stand free already
    created: int
    unmet: int
    reason: str | None = None
    blocked_by: tuple[str, ...] = ()  # held instances that stand where one of it would go, in words


@value
class MigPlan:
    """The layouts and what they cost. A bound is None where it was not computed.

    method: exact (nothing is better in the order of the aims), or greedy (compare with the bounds).
    """

    answers: tuple[AskAnswer, ...]
    devices: tuple[DeviceLayout, ...]
    method: str
    considered: int  # devices that the plan could use
    left_out: dict[str, int] = field(default_factory=dict)  # reason -> devices that could be cut and are not considered
    free_gpus_before: int = 0  # considered devices of which nobody holds any part
    free_gpus_lost: int = 0  # of those, the ones that the demand comes to
    repartitioned: int = 0  # devices that are changed
    unmet: int = 0  # instances
    met_slices: int = 0  # compute slices of the demand that are met
    most_met_slices: int | None = None  # no plan meets more
    fewest_free_gpus_lost: int | None = None  # no plan that meets as much loses fewer
    training_kept_off: tuple[str, ...] = ()  # waiting training jobs that were given nothing
