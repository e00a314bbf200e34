"""Reads one device, on the device's own thread: opens it, follows its MIG layout, asks every feature."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuwatch_exporters.device.frame import Identity, InstanceFrame, Process, Value
from gpuwatch_exporters.nvml import mig
from gpuwatch_exporters.nvml.boards import Address, NotOpenError, open_board
from gpuwatch_exporters.nvml.calls import Calls, DeviceLostError, DriverGoneError
from gpuwatch_exporters.nvml.features import Feature
from gpuwatch_exporters.nvml.group import Board, Group, Instance

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading a device gave. `down` is why there are no values: lost, driver_gone, not_listed ...; else None.
    features: why each feature is off, "" for one that is on."""

    generation: int
    identity: Identity | None = None
    down: str | None = None
    values: tuple[Value, ...] = ()
    instances: tuple[InstanceFrame, ...] = ()
    processes: tuple[Process, ...] = ()
    features: Mapping[str, str] = field(default_factory=dict)


class Reader:
    """One device. Only `cancel` and the counters may be used from another thread."""

    def __init__(self, address: Address, groups: Mapping[str, Group]) -> None:
        self.address = address
        self.calls = Calls(f"GPU {address}")  # the first of a row of renewed ones; they share its counts
        self.faults: Counter[str] = Counter()
        self.opened = False
        self._groups = groups
        self._board: Board | None = None
        self._generation = 0
        self._cancelled = False
        self._instances: list[Instance] = []
        self._layout: list[mig.Found] = []
        self._features: list[Feature] = []

    def read(self, generation: int, driver_version: str) -> Reading:
        """Reads everything once. Never raises for what a device or driver can do."""
        try:
            if self._board is None or self._generation != generation:
                self._cancelled = False
                self._open(generation, driver_version)
            if self._cancelled:  # the opening itself hung meanwhile
                raise DriverGoneError("closed")
            board = self._follow_layout()
            return self._reading(board)
        except NotOpenError as err:
            return Reading(generation, down=err.reason)
        except DeviceLostError:
            identity = self._board.identity if self._board else None
            self.close()  # what is lost may come back as another handle
            return Reading(generation, identity, "lost")
        except DriverGoneError:
            return Reading(generation, self._board.identity if self._board else None, "driver_gone")

    def cancel(self) -> None:
        """Makes a reading that is going on stop at its next call. From any thread."""
        self._cancelled = True
        board, instances = self._board, self._instances
        for calls in [board.calls if board else None, *(each.calls for each in instances)]:
            if calls is not None:
                calls.closed = True

    def close(self) -> None:
        """Frees what the features hold, before the library is shut."""
        board, instances = self._board, self._instances
        self._board, self._instances, self._layout, self.opened = None, [], [], False
        if board is not None:
            self._close_features(board, instances)
        self._features = []

    def _close_features(self, board: Board, instances: list[Instance]) -> None:
        for feature in self._features:
            try:
                feature.close(board, instances)
            except (DeviceLostError, DriverGoneError) as err:
                log.debug("closing %s: %r", feature.id, err)

    def _open(self, generation: int, driver_version: str) -> None:
        self.close()
        self._board = open_board(self.address, driver_version, self.calls.renewed())
        self._generation, self.opened = generation, True
        self._renew_features()

    def _renew_features(self) -> None:
        self._features = [Feature(id_, group, self.faults) for id_, group in self._groups.items()]

    def _follow_layout(self) -> Board:
        """The board as it is now; a new one, with new instances, when its MIG mode or layout has changed."""
        board = self._board
        assert board is not None
        mode = mig.enabled(board)
        found = [] if mode is False else mig.scan(board) if mode else None
        if found is None or (mode == board.mig_enabled and [each for _, each in found] == self._layout):
            return board  # unchanged, or unknown in this cycle
        self._close_features(board, self._instances)
        # Whatever failed before may work in the new layout: nothing is known of it.
        board = Board(board.handle, board.identity, board.calls.renewed(), bool(mode))
        self._board, self._layout = board, [each for _, each in found]
        self._instances = mig.instances(board, found)
        board.instances = len(self._instances)
        self._renew_features()
        return board

    def _reading(self, board: Board) -> Reading:
        board.cycle += 1
        values: list[Value] = []
        of_instances: list[list[Value]] = [[] for _ in self._instances]
        for feature in self._features:
            told = feature.read(board, self._instances)
            values += told.board
            for mine, more in zip(of_instances, told.instances, strict=bool(told.instances)):
                mine += more
        frames = tuple(
            InstanceFrame(each.id, each.uuid, each.profile, each.placement_start, each.placement_size, tuple(mine))
            for each, mine in zip(self._instances, of_instances, strict=True)
        )
        kept = (board.kept, *(each.kept for each in self._instances))
        processes = [each for mine in kept for each in mine.get("processes", ())]
        features = {each.id: each.off for each in self._features}
        return Reading(
            self._generation, board.identity, None, tuple(values), frames, tuple(dict.fromkeys(processes)), features
        )
