"""Why a node cannot take one member: the first cause that holds, on all nodes at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from gpuwatch.fit.booking import Booking, node_block_cause
from gpuwatch.fit.columns import BoolArray, Columns
from gpuwatch.model.jobs import DemandShape

Test = tuple[str, BoolArray]  # cause, (N,) where it holds


class Blocking:
    """What keeps work off each node of a booking, whatever is asked for; made once, asked for many shapes."""

    def __init__(self, booking: Booking, columns: Columns) -> None:
        nodes = [booked.node for booked in booking.nodes.values()]
        blocked = [node_block_cause(node) for node in nodes]
        self._columns = columns
        self._without_gpus = np.array([not node.gpus for node in nodes], dtype=np.bool_)
        # A node without devices is all in MIG mode, as nothing on it is not; it is charged as such before.
        self._all_mig = np.array([all(gpu.mig_enabled for gpu in node.gpus) for node in nodes], dtype=np.bool_)
        self._blocked = {
            cause: np.array([each == cause for each in blocked], dtype=np.bool_)
            for cause in sorted({each for each in blocked if each is not None})
        }
        profiles = [{i.profile for gpu in node.gpus for i in gpu.mig_instances} for node in nodes]
        self._profiles = {
            name: np.array([name in each for each in profiles], dtype=np.bool_)
            for name in sorted(set().union(*profiles))
        }

    def charged(
        self, shape: DemandShape, lacking: BoolArray, of_cards: Iterable[Test] = ()
    ) -> Iterator[tuple[str, BoolArray]]:
        """(cause, (N,) the nodes that it is charged to), each node to the first of its causes.

        lacking: (N,) too few devices with room, or too few free instances, for one member. of_cards: further causes
        that lie with the cards, charged after `model`. Order of charge: no_gpus, blocked:<cause>, mig_mode, model,
        of_cards, gpu_lacking, cpu_lacking, memory_lacking; for a MIG shape mig_profile (none created) and mig_busy
        (all held) take the place of the device causes.
        """
        open_ = np.ones(len(self._columns.names), dtype=np.bool_)
        for cause, holds in self._tests(shape, lacking, of_cards):
            yield cause, holds & open_
            open_ &= ~holds

    def _tests(self, shape: DemandShape, lacking: BoolArray, of_cards: Iterable[Test]) -> Iterator[Test]:
        if shape.gpus > 0:
            yield "no_gpus", self._without_gpus
        for cause, here in self._blocked.items():
            yield f"blocked:{cause}", here
        if shape.gpus > 0 and shape.mig_profile:
            yield "mig_profile", ~self._profiles.get(shape.mig_profile, np.zeros_like(lacking))
            yield "mig_busy", lacking
        elif shape.gpus > 0:
            yield "mig_mode", self._all_mig
            if shape.gpu_models:
                yield "model", np.logical_not(self._columns.accepted(shape.gpu_models).any(axis=1))
            yield from of_cards
            yield "gpu_lacking", lacking
        yield "cpu_lacking", self._columns.cpu_free < shape.cpu_millicores
        yield "memory_lacking", self._columns.memory_free < shape.memory_bytes
