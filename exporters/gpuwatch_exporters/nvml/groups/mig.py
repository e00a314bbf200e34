"""MIG: the board's mode, what each instance has, and how many more instances of each profile could be created."""

from __future__ import annotations

from collections.abc import Iterable

import pynvml as nv

from gpuwatch_exporters.device.families import mig as of
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.group import GROUPS, Board, Group, Instance
from gpuwatch_exporters.nvml.mig import clean_name, profile_name, size_name, why_disabled

_ENGINES = (
    (of.COMPUTE_SLICES, "computeInstanceSliceCount"),
    (of.INSTANCE_SLICES, "gpuInstanceSliceCount"),
    (of.MULTIPROCESSORS, "multiprocessorCount"),
    (of.COPY_ENGINES, "sharedCopyEngineCount"),
    (of.DECODERS, "sharedDecoderCount"),
    (of.ENCODERS, "sharedEncoderCount"),
    (of.JPEG_ENGINES, "sharedJpegCount"),
    (of.OFA_ENGINES, "sharedOfaCount"),
)


class MigMode(Group):
    help = "MIG mode now and after the next reset, instances"

    def read(self, board: Board) -> Iterable[Value]:
        modes = board.ask(nv.nvmlDeviceGetMigMode)
        if modes is not None:
            yield Value(of.ENABLED, (), modes[0])
            yield Value(of.PENDING, (), modes[1])
            if board.mig_enabled:
                yield Value(of.INSTANCES, (), board.instances)


class MigInstances(Group):
    help = "slices and engines of each MIG instance"
    cadence = "static"

    def read(self, board: Board) -> Iterable[Value]:
        if not board.instances:
            board.why = "no_instances" if board.mig_enabled else why_disabled(board)
        return ()

    def read_instance(self, board: Board, instance: Instance) -> Iterable[Value]:
        told = instance.ask(nv.nvmlDeviceGetAttributes_v2)
        if told is not None:
            yield from (Value(family, (), getattr(told, field)) for family, field in _ENGINES)


class MigRoom(Group):
    """Asked slowly: a GPU instance without a compute instance takes room and shows nowhere else."""

    help = "how many more MIG instances of each profile could be created"
    cadence = "slow"

    def read(self, board: Board) -> Iterable[Value]:
        if not board.mig_enabled:
            board.why = why_disabled(board)
            return
        if "mig_room" not in board.kept:
            board.kept["mig_room"] = _profiles(board)
        for name, id_, most in board.kept["mig_room"]:
            yield Value(of.PROFILE_LIMIT, (name,), most)
            free = board.ask(nv.nvmlDeviceGetGpuInstanceRemainingCapacity, id_)
            if free is not None:
                yield Value(of.PROFILE_FREE, (name,), free)


def _profiles(board: Board) -> list[tuple[str, int, int]]:
    """(name, id, most) of each profile that the board offers; two with one name are told apart by the driver only."""
    memory = board.ask(nv.nvmlDeviceGetMemoryInfo)
    found: dict[str, tuple[str, int, int]] = {}
    for kind in range(nv.NVML_GPU_INSTANCE_PROFILE_COUNT):
        info = board.ask(nv.nvmlDeviceGetGpuInstanceProfileInfo, kind) or board.ask(
            nv.nvmlDeviceGetGpuInstanceProfileInfo, kind, 1
        )
        if info is None:
            continue
        name = clean_name(info.name) if hasattr(info, "name") else profile_name(board, info.id)
        if name is None and memory is not None and memory.total:
            name = size_name(info.sliceCount, info.memorySizeMB, memory.total)
        if name is not None:
            found.setdefault(name, (name, info.id, info.instanceCount))
    return list(found.values())


GROUPS.register("mig_mode")(MigMode())
GROUPS.register("mig_instances")(MigInstances())
GROUPS.register("mig_room")(MigRoom())
