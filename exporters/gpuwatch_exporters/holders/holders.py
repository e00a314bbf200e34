"""Who holds each device, once per cycle."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from gpuwatch_exporters.device.families import holders as of
from gpuwatch_exporters.device.frame import DeviceFrame, Frame, Value, Workload
from gpuwatch_exporters.holders.background import Background
from gpuwatch_exporters.holders.holding import Holding, Told
from gpuwatch_exporters.holders.matching import Devices, Slot, slots
from gpuwatch_exporters.holders.names import Names
from gpuwatch_exporters.holders.podresources.source import PodResources
from gpuwatch_exporters.holders.processes import SOURCE as PROCESS
from gpuwatch_exporters.holders.processes import Owner, Owners, Processes
from gpuwatch_exporters.holders.settings import HolderSettings
from gpuwatch_exporters.holders.slurm.source import SlurmJobs


class Holders:
    """Asks the sources that the settings name. One caller at a time: the thread of the cycle.

    What a source told last is used until it is max_age old; its age is among the values. A source that is not there
    costs a look at a folder or socket per interval, and is picked up when it appears.
    """

    def __init__(self, settings: HolderSettings) -> None:
        self._wait, self._enabled = settings.wait, settings.sources
        self._claims = {name: self._background(name, settings) for name in ("podresources", "slurm")}
        self._processes: Background[frozenset[int], Owners] = Background(
            PROCESS, Processes(settings.procfs, Names().of).look, 0.0, settings.max_age
        )
        self._reasons: dict[str, str] = {}

    def read(self, frame: Frame, now: float) -> tuple[tuple[Workload, ...], tuple[Value, ...]]:
        """(holders of the frame's devices and MIG instances, values of the node's families).

        now: seconds on any steady clock. Waits at most settings.wait seconds, never raises.
        """
        until = time.monotonic() + self._wait
        asked = [each for name, each in self._claims.items() if name in self._enabled]
        for source in asked:
            source.ask(frame, now)
        for source in asked:
            source.wait(until)
        devices = Devices(frame.devices)
        workloads: dict[Workload, None] = {}
        values: list[Value] = []
        for source in asked:
            told, age, reason = source.latest(now)
            values += self._state(source.name, age, reason)
            if told is not None:
                found, unknown = _named(devices, told.holdings)
                workloads.update(dict.fromkeys(found))
                values.append(Value(of.UNKNOWN_DEVICES, (source.name,), unknown))
        if PROCESS in self._enabled:
            held = {Slot(each.uuid, each.instance) for each in workloads}
            owned, more = self._owned(frame.devices, held, now, until)
            workloads.update(dict.fromkeys(owned))
            values += more
        return tuple(workloads), (*values, *self._failures())

    def states(self) -> dict[str, str]:
        """Each source and why it tells nothing: "" for one that does, "disabled" for one that is not asked."""
        return {
            name: self._reasons.get(name, "waiting") if name in self._enabled else "disabled"
            for name in (*self._claims, PROCESS)
        }

    def notes(self) -> list[str]:
        """What somebody should do so that a source can tell, as sentences for people."""
        return [note for each in self._everyone() if (note := each.note())]

    def close(self) -> None:
        """Ends the threads; waits for none that hangs."""
        for source in self._everyone():
            source.close()

    def _everyone(self) -> tuple[Background[Any, Any], ...]:
        return (*self._claims.values(), self._processes)

    @staticmethod
    def _background(name: str, settings: HolderSettings) -> Background[Frame, Told]:
        jobs = SlurmJobs(settings.cgroupfs, settings.procfs, Names().of, settings.slurm_job_dir, settings.gpu_job_dir)
        pods = PodResources(settings.kubelet_socket, settings.kubelet_timeout)
        look = pods.look if name == "podresources" else jobs.look
        return Background(name, look, settings.interval, settings.max_age)

    def _owned(
        self, devices: Iterable[DeviceFrame], held: set[Slot], now: float, until: float
    ) -> tuple[list[Workload], list[Value]]:
        """Owners of the processes on devices and instances that nobody else claims."""
        free = [(slot, pid) for slot, pid in _processes(devices) if slot not in held and Slot(slot.uuid) not in held]
        self._processes.ask(frozenset(pid for _, pid in free), now)
        self._processes.wait(until)
        owners, age, reason = self._processes.latest(now)
        values = self._state(PROCESS, age, reason)
        if owners is None:
            return [], values
        return [_workload(slot, owners.by_pid[pid]) for slot, pid in free if pid in owners.by_pid], values

    def _state(self, source: str, age: float | None, reason: str) -> list[Value]:
        self._reasons[source] = reason
        if age is None:
            return [Value(of.SOURCE_UP, (source,), 0), Value(of.SOURCE_DOWN, (source, reason), 1)]
        return [Value(of.SOURCE_UP, (source,), 1), Value(of.AGE, (source,), age)]

    def _failures(self) -> Iterator[Value]:
        for source in self._everyone():
            for reason, times in sorted(source.failures().items()):
                yield Value(of.FAILURES, (source.name, reason), times)


def _named(devices: Devices, holdings: Iterable[Holding]) -> tuple[list[Workload], int]:
    """(holders of devices that are here, refs to GPUs that are not)."""
    found, unknown = [], set()
    for holding in holdings:
        for ref, slot in slots(devices, holding.refs):
            if slot is None:
                unknown.add(ref)
                continue
            found.append(
                Workload(
                    slot.uuid, slot.instance, holding.namespace, holding.pod, holding.container, holding.job_id,
                    holding.user, holding.source,
                )
            )  # fmt: skip
    return found, len(unknown)


def _processes(devices: Iterable[DeviceFrame]) -> Iterator[tuple[Slot, int]]:
    for device in devices:
        for process in device.processes:
            yield Slot(device.identity.uuid, process.gpu_instance), process.pid


def _workload(slot: Slot, owner: Owner) -> Workload:
    holder = Workload(slot.uuid, slot.instance, source=PROCESS)
    return replace(holder, user=owner.user, container=owner.container, job_id=owner.job_id)
