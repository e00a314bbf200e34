"""The lines that bring a device from one MIG layout to another, in order, each with its undo. gpuwatch runs none.

Undone in reverse order they bring the layout back that was there. They are for nodes that are cut by hand; where a MIG
manager owns the layout, the same layout goes into its configuration.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from gpuwatch.advice import commands
from gpuwatch.model.catalogue import card
from gpuwatch.model.evaluation import Command
from gpuwatch.model.jobs import Job
from gpuwatch.model.mig import DeviceLayout, MigSpot

_NO_UNDO = "true  # it changed nothing"
_SAFE_UUID = re.compile(r"GPU-[0-9a-f-]+")
_RESET = ("ampere",)  # generations whose devices are reset when MIG mode is switched


def steps(layouts: Iterable[DeviceLayout], jobs: Sequence[Job] = (), *, slurm: bool = False) -> tuple[Command, ...]:
    """All lines for the devices that the plan changes, node by node: keep work off, drain, enable MIG, delete, create,
    verify, let work in. `jobs`: the snapshot's, for draining; `slurm`: nodes are drained through Slurm."""
    changed = sorted((each for each in layouts if each.create or each.delete), key=lambda each: each.node)
    by_id = {job.id: job for job in jobs}
    lines: list[Command] = []
    for node, mine in groupby(changed, key=lambda each: each.node):
        cut = list(mine)
        lines.append(_closed(node, slurm))
        lines += [
            line for name in dict.fromkeys(j for each in cut for j in each.drain) for line in _drained(name, by_id)
        ]
        for each in cut:
            lines += device_steps(each)
        lines.append(_opened(node, slurm))
    return tuple(lines)


def device_steps(layout: DeviceLayout) -> tuple[Command, ...]:
    """The lines for one device, on its node, when nobody works on what is deleted."""
    return tuple(_enable(layout) + _deletes(layout) + _creates(layout) + [_verify(layout)])


def _enable(layout: DeviceLayout) -> list[Command]:
    if not layout.enable_mig:
        return []
    known = card(layout.gpu_model)
    note = "resets the device" if known and known.generation in _RESET else "no process may use the device"
    head = f"nvidia-smi -i {_device(layout)} -mig"
    return [Command(run=f"{head} 1", undo=f"{head} 0", note=_on(layout, note))]


def _deletes(layout: DeviceLayout) -> list[Command]:
    head = _head(layout)
    out = []
    for spot in layout.delete:
        gone = f"-gi {shlex.quote(spot.id or '')}"
        note = _on(layout, f"deletes the idle {spot.profile}; fails when a process uses it")
        out.append(Command(run=f"{head} -dci {gone} && {head} -dgi {gone}", undo=_creation(layout, [spot]), note=note))
    return out


def _creates(layout: DeviceLayout) -> list[Command]:
    if not layout.create:
        return []
    untold = any(spot.start is None for spot in layout.create)
    note = "starts of what stands there are not told: the driver chooses" if untold else "largest first"
    order = sorted(layout.create, key=lambda spot: (-spot.memory_slices, spot.start or 0))
    return [Command(run=_creation(layout, order), undo=_removal(layout, order), note=_on(layout, note))]


def _verify(layout: DeviceLayout) -> Command:
    told = ", ".join(_place(spot) for spot in sorted((*layout.keep, *layout.create), key=lambda spot: spot.start or 0))
    return Command(run=f"{_head(layout)} -lgi", undo=_NO_UNDO, note=_on(layout, f"shows {told or 'no instance'}"))


def _creation(layout: DeviceLayout, spots: Sequence[MigSpot]) -> str:
    told = ",".join(spot.profile if spot.start is None else f"{spot.profile}:{spot.start}" for spot in spots)
    return f"{_head(layout)} -cgi {shlex.quote(told)} -C"


def _removal(layout: DeviceLayout, spots: Sequence[MigSpot]) -> str:
    """Looks the ids up: the driver gives them when it creates."""
    head = _head(layout)
    if any(spot.start is None for spot in spots):
        return f"{head} -lgi  # then, for each id that the creation printed: {head} -dci -gi ID && {head} -dgi -gi ID"
    places = "|".join(f"{spot.start}:{spot.memory_slices}" for spot in spots)
    find = f"{head} -lgi | awk '$7 ~ /^({places})$/ {{print $6}}'"
    return f'for id in $({find}); do {head} -dci -gi "$id" && {head} -dgi -gi "$id"; done'


def _place(spot: MigSpot) -> str:
    return f"{spot.profile} " + (
        "at an untold start" if spot.start is None else f"at {spot.start}:{spot.memory_slices}"
    )


def _head(layout: DeviceLayout) -> str:
    return f"nvidia-smi mig -i {_device(layout)}"


def _device(layout: DeviceLayout) -> str:
    """The UUID where it is one: an index may change at a reboot."""
    return layout.uuid if layout.uuid and _SAFE_UUID.fullmatch(layout.uuid) else str(layout.gpu_index)


def _on(layout: DeviceLayout, note: str) -> str:
    return f"on {layout.node}, GPU {layout.gpu_index}: {note}"


def _closed(node: str, slurm: bool) -> Command:
    return _slurm_drain(node, "new work must not take what is about to change") if slurm else commands.cordon(node)


def _opened(node: str, slurm: bool) -> Command:
    if slurm:
        again = _slurm_drain(node, "")
        return Command(run=again.undo, undo=again.run, note="the node takes work again")
    return commands.uncordon(node)


def _slurm_drain(node: str, note: str) -> Command:
    head = f"scontrol update NodeName={shlex.quote(node)} State="
    return Command(run=f"{head}DRAIN Reason=mig-repartition", undo=f"{head}RESUME", note=note)


def _drained(name: str, jobs: Mapping[str, Job]) -> tuple[Command, ...]:
    return commands.move(jobs[name], "another node") if name in jobs else ()
