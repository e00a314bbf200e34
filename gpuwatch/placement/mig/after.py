"""A node as it would stand after a plan, for looking at what could start there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gpuwatch.fit.booking import BookedNode
from gpuwatch.fit.mig import geometry_of
from gpuwatch.model.cluster import Gpu, MigInstance
from gpuwatch.model.mig import DeviceLayout


def node_after(booked: BookedNode, layouts: Iterable[DeviceLayout]) -> BookedNode:
    """The node with the layouts of its own devices made; holds stay as they are. Layouts of other nodes are ignored.

    New instances are called new-0, new-1 ... on each device.
    """
    mine = {layout.gpu_index: layout for layout in layouts if layout.node == booked.node.name}
    changed = [gpu.index in mine for gpu in booked.node.gpus]
    return replace(
        booked,
        node=replace(booked.node, gpus=tuple(_cut(gpu, mine.get(gpu.index)) for gpu in booked.node.gpus)),
        left_milligpu=[0 if cut else left for left, cut in zip(booked.left_milligpu, changed, strict=True)],
        usable=[ok and not cut for ok, cut in zip(booked.usable, changed, strict=True)],
    )


def _cut(gpu: Gpu, layout: DeviceLayout | None) -> Gpu:
    geometry = geometry_of(gpu)
    if layout is None or geometry is None:
        return gpu
    gone = {spot.id for spot in layout.delete}
    stay = [each for each in gpu.mig_instances if each.id not in gone]
    made = [
        MigInstance(
            id=f"new-{at}",
            profile=spot.profile,
            compute_slices=profile.compute_slices,
            memory_slices=profile.memory_slices,
            placement_start=spot.start,
        )
        for at, spot in enumerate(layout.create)
        if (profile := geometry.profile(spot.profile)) is not None
    ]
    return replace(gpu, mig_enabled=True, mig_instances=(*stay, *made))
