"""What a group of readings is, and what it is handed: one device, its calls, and a place for what it must remember."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar

from gpuwatch.registry import Registry
from gpuwatch_exporters.device.frame import Identity, Value
from gpuwatch_exporters.nvml.calls import Calls

T = TypeVar("T")
Cadence = Literal["cycle", "slow", "static"]


@dataclass(slots=True)
class Board:
    """One physical GPU as groups see it. `kept` belongs to the groups, a slot each (by their id), and lives as long
    as the handle: it is emptied by a re-init and by a change of the MIG layout."""

    handle: Any
    identity: Identity
    calls: Calls
    mig_enabled: bool = False
    instances: int = 0  # MIG devices on it
    cycle: int = 0  # counts readings of this board: what is read once for several groups is read anew in a new one
    kept: dict[str, Any] = field(default_factory=dict)
    why: str = ""  # told by a group that gives no value and knows why no call could: mig_disabled, no_fans ...

    def ask(self, function: Callable[..., T], *arguments: Any) -> T | None:
        """`function(handle, *arguments)`, or None where there is no value (see Calls.ask)."""
        return self.calls.ask(function, self.handle, *arguments)


@dataclass(slots=True)
class Instance:
    """One MIG device of a board: its own handle and calls, the ids of its GPU instance and compute instance."""

    handle: Any
    id: str
    uuid: str
    gpu_instance_id: int
    compute_instance_id: int
    profile: str | None
    placement_start: int | None
    placement_size: int | None
    calls: Calls
    kept: dict[str, Any] = field(default_factory=dict)

    def ask(self, function: Callable[..., T], *arguments: Any) -> T | None:
        """`function(handle, *arguments)`, or None where there is no value (see Calls.ask)."""
        return self.calls.ask(function, self.handle, *arguments)


class Group:
    """One feature. `cadence`: every cycle, slowly (about once a minute), or once until the handles change.

    `detail` marks what has many series for one GPU (one for each link, engine or memory): read where it is asked for.
    A value that was not read is not given. A group never catches DeviceLostError or DriverGoneError.
    """

    help: ClassVar[str]
    cadence: ClassVar[Cadence] = "cycle"
    detail: ClassVar[bool] = False

    def read(self, board: Board) -> Iterable[Value]:
        """Values of the physical GPU."""
        return ()

    def read_instance(self, board: Board, instance: Instance) -> Iterable[Value]:
        """Values of one MIG instance. What only the board has (power, heat, energy) is never repeated here."""
        return ()

    def close(self, board: Board) -> None:
        """Frees what the group holds in `kept` of the board (library memory), also before a re-init. Never raises."""

    def close_instance(self, instance: Instance) -> None:
        """The same for an instance."""


GROUPS: Registry[Group] = Registry("group of readings", package="gpuwatch_exporters.nvml.groups")
