"""What a member asks of a place, and the vectorized question where it fits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuwatch.fit.columns import BoolArray, Columns, IntArray
from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.units import MILLI

NO_ROOM = 2 * MILLI  # more than any device has left


@dataclass(frozen=True, slots=True)
class Ask:
    """All that decides whether a spot fits. `share` is 0 for a member without GPUs; `models` empty accepts any."""

    gpus: int
    share: int
    cpu: int
    memory: int
    models: tuple[str, ...]
    pool: str | None

    @property
    def milligpu(self) -> int:
        """Thousandths of a device in all."""
        return self.gpus * self.share


def ask_of(shape: DemandShape, pool: str | None, models: tuple[str, ...]) -> Ask:
    """The ask of one member of `shape` in `pool` on cards of `models`."""
    return Ask(
        gpus=shape.gpus,
        share=shape.milligpu_per_gpu if shape.gpus else 0,
        cpu=shape.cpu_millicores,
        memory=shape.memory_bytes,
        models=models if shape.gpus else (),
        pool=pool,
    )


@dataclass(frozen=True, slots=True)
class States:
    """R states of nodes, each of one row of the columns: what would be left there."""

    row: IntArray  # (R,)
    cpu: IntArray  # (R,)
    memory: IntArray  # (R,)
    left: IntArray  # (R, W)

    def copy(self) -> States:
        """States that can change without touching these."""
        return States(self.row, self.cpu.copy(), self.memory.copy(), self.left.copy())

    def __len__(self) -> int:
        return len(self.row)


class Access:
    """Which rows and devices an ask may use at all, whatever is free there now. Remembered per (models, pool)."""

    def __init__(self, columns: Columns, pools: tuple[str, ...] = ()) -> None:
        """`pools`: nothing may go anywhere else; empty: everywhere."""
        self._columns = columns
        self._pools = pools
        self._rows: dict[str | None, BoolArray] = {}
        self._devices: dict[tuple[tuple[str, ...], str | None], BoolArray] = {}

    def rows(self, ask: Ask) -> BoolArray:
        """(N,) nodes that take work and belong to the pool asked for."""
        if ask.pool not in self._rows:
            asked = [name for name in self._columns.pools if ask.pool in (None, name)]
            codes = [
                at for at, name in enumerate(self._columns.pools) if name in (set(asked) & set(self._pools or asked))
            ]
            self._rows[ask.pool] = self._columns.open & np.isin(self._columns.pool, codes)
        return self._rows[ask.pool]

    def devices(self, ask: Ask) -> BoolArray:
        """(N, W) devices on those nodes of an accepted model."""
        key = ask.models, ask.pool
        if key not in self._devices:
            self._devices[key] = self._columns.accepted(ask.models) & self.rows(ask)[:, None]
        return self._devices[key]


def fitting(access: Access, ask: Ask, states: States, among: IntArray | None = None) -> IntArray:
    """Positions in `states` (of those `among`) where one member of `ask` fits."""
    at = np.arange(len(states)) if among is None else among
    at = at[(states.cpu[at] >= ask.cpu) & (states.memory[at] >= ask.memory)]
    if not ask.gpus:
        return at[access.rows(ask)[states.row[at]]]
    roomy = (states.left[at] >= ask.share) & access.devices(ask)[states.row[at]]
    return at[roomy.sum(axis=1) >= ask.gpus] if ask.gpus > 1 else at[roomy.any(axis=1)]


def tightest(access: Access, ask: Ask, states: States, at: IntArray) -> IntArray:
    """(at,) the device with room that has the least left, for an ask of one device that fits in each of `at`."""
    roomy = (states.left[at] >= ask.share) & access.devices(ask)[states.row[at]]
    device: IntArray = np.where(roomy, states.left[at], NO_ROOM).argmin(axis=1)
    return device


def spot(access: Access, ask: Ask, states: States, at: int) -> tuple[int, ...]:
    """The devices that one member takes in state `at`, where it fits: the fullest, lowest first on ties."""
    if not ask.gpus:
        return ()
    roomy = (states.left[at] >= ask.share) & access.devices(ask)[int(states.row[at])]
    found = np.flatnonzero(roomy)
    order = found[np.argsort(states.left[at][found], kind="stable")]
    return tuple(sorted(int(device) for device in order[: ask.gpus]))
