"""Readings of simulated devices: a pure function of (seed, device, load, time), so that any moment can be drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from random import Random

from gpuwatch.model.catalogue import card
from gpuwatch.model.cluster import Activity, Gpu, MigInstance, Node, Telemetry
from gpuwatch.model.units import COMPUTE_SLICES, MIB
from gpuwatch.simulate.behavior import Behavior

TICK_SECONDS = 15  # readings stand still within one tick, as between two collections of a real exporter
WINDOW_SECONDS = 1800
SAMPLE_SECONDS = 30
_IDLE_POWER_RATIO, _LOADED_POWER_RATIO = 0.11, 0.17
_AMBIENT_CELSIUS, _RISE_CELSIUS, _HOT_CELSIUS = 31.0, 42.0, 91.0
_NO_ENGINE_COUNTERS = frozenset({"pascal", None})  # profiling counters came with the generation after


@dataclass(frozen=True, slots=True)
class DeviceLoad:
    """What runs on one device: time-sharing behaviors with their thousandths, or a behavior per MIG instance."""

    shares: tuple[tuple[Behavior, int], ...] = ()
    slices: Mapping[str, Behavior] = field(default_factory=dict)
    silent_slices: frozenset[str] = frozenset()  # instances whose series are missing
    samples_ratio: float = 1.0
    hot: bool = False
    xid: int | None = None


def observe(node: Node, loads: Mapping[int, DeviceLoad], seed: int, at: datetime) -> Node:
    """The node with telemetry and activity of every device at `at`; a device that has a telemetry_reason stays dark."""
    gpus = tuple(
        gpu if gpu.telemetry_reason else _observe_gpu(node.name, gpu, loads.get(gpu.index, DeviceLoad()), seed, at)
        for gpu in node.gpus
    )
    return replace(node, gpus=gpus)


def _observe_gpu(node: str, gpu: Gpu, load: DeviceLoad, seed: int, at: datetime) -> Gpu:
    key = f"{seed}/{gpu.uuid or f'{node}/{gpu.index}'}"
    if gpu.mig_enabled:
        return _observe_mig(gpu, load, key, at)
    behavior = _together(load.shares)
    total = _memory(gpu)
    readings = _telemetry(key, behavior, total, gpu, load, at)
    return replace(
        gpu,
        memory_total_bytes=total,
        telemetry=readings,
        activity=_activity(key, behavior, total, gpu, load, at),
    )


def _observe_mig(gpu: Gpu, load: DeviceLoad, key: str, at: datetime) -> Gpu:
    total = _memory(gpu)
    instances, used, engine = [], 0, 0.0
    for instance in gpu.mig_instances:
        if instance.id in load.silent_slices:
            instances.append(instance)
            continue
        behavior = load.slices.get(instance.id, _FREE)
        size = None if total is None else total * instance.memory_slices // 8
        seen = _observe_instance(instance, behavior, f"{key}/{instance.id}", size, gpu, load, at)
        instances.append(seen)
        if seen.telemetry is not None:
            used += seen.telemetry.memory_used_bytes or 0
            engine += (seen.telemetry.engine_active_ratio or 0.0) * instance.compute_slices / COMPUTE_SLICES
    board = _telemetry(key, Behavior(min(1.0, engine), 0.0, 0.0), total, gpu, load, at)
    board = replace(
        board,
        utilization_ratio=None,
        engine_active_ratio=None,
        memory_used_bytes=used,
        missing={"utilization_ratio": "mig", "engine_active_ratio": "mig"},
    )
    return replace(
        gpu,
        memory_total_bytes=total,
        mig_instances=tuple(instances),
        telemetry=board,
        activity_reason="mig",
    )


def _observe_instance(
    instance: MigInstance, behavior: Behavior, key: str, size: int | None, gpu: Gpu, load: DeviceLoad, at: datetime
) -> MigInstance:
    whole = _telemetry(key, behavior, size, gpu, load, at)
    reading = Telemetry(
        engine_active_ratio=whole.engine_active_ratio,
        memory_used_bytes=whole.memory_used_bytes,
        memory_total_bytes=size,
        missing={"utilization_ratio": "mig", "power_watts": "board_only", "temperature_celsius": "board_only"},
    )
    seen = replace(_activity(key, behavior, size, gpu, load, at), mean_power_watts=None)
    return replace(instance, telemetry=reading, activity=seen)


def _telemetry(key: str, behavior: Behavior, total: int | None, gpu: Gpu, load: DeviceLoad, at: datetime) -> Telemetry:
    tick = int(at.timestamp()) // TICK_SECONDS
    draw = Random(f"{key}/{tick}")
    engine = _engine(key, behavior, draw, tick)
    profile = card(gpu.model)
    limit = None if profile is None else float(profile.board_power_watts)
    counters = profile is not None and profile.generation not in _NO_ENGINE_COUNTERS
    missing = {} if counters else {"engine_active_ratio": "not_offered_by_card"}
    if limit is None:
        missing |= dict.fromkeys(("power_watts", "power_limit_watts"), "unknown_card")
    if total is None:
        missing |= dict.fromkeys(("memory_used_bytes", "memory_total_bytes"), "unknown_card")
    heat = _HOT_CELSIUS if load.hot else _AMBIENT_CELSIUS + _RISE_CELSIUS * engine
    return Telemetry(
        utilization_ratio=0.0 if engine == 0 else round(min(1.0, 1.08 * engine + 0.02), 2),
        engine_active_ratio=round(engine, 4) if counters else None,
        memory_used_bytes=None if total is None else _memory_used(behavior, total, draw),
        memory_total_bytes=total,
        power_watts=None if limit is None else round(_power(behavior, engine, limit) * draw.uniform(0.98, 1.02), 1),
        power_limit_watts=limit,
        temperature_celsius=round(heat + draw.uniform(-1.5, 1.5)),
        xid=load.xid,
        missing=missing,
    )


def _activity(key: str, behavior: Behavior, total: int | None, gpu: Gpu, load: DeviceLoad, at: datetime) -> Activity:
    draw = Random(f"{key}/window/{int(at.timestamp()) // WINDOW_SECONDS}")
    expected = WINDOW_SECONDS // SAMPLE_SECONDS
    mean = _clamp(behavior.engine_mean * draw.uniform(0.96, 1.04))
    peak = 0.0 if behavior.idle else _clamp(mean + behavior.engine_swing * draw.uniform(0.9, 1.1))
    profile = card(gpu.model)
    counters = profile is not None and profile.generation not in _NO_ENGINE_COUNTERS
    return Activity(
        window_seconds=WINDOW_SECONDS,
        samples=round(expected * load.samples_ratio),
        samples_expected=expected,
        peak_ratio=round(peak, 4),
        mean_ratio=round(mean, 4),
        peak_memory_used_bytes=None if total is None else round(total * min(0.97, behavior.memory_ratio * 1.04)),
        mean_power_watts=None if profile is None else round(_power(behavior, mean, profile.board_power_watts), 1),
        signal="engine_active" if counters else "utilization",
    )


_FREE = Behavior(0.0, 0.0, 0.0)


def _together(shares: tuple[tuple[Behavior, int], ...]) -> Behavior:
    """One behavior for several workloads on one device: a time share lends it that part of the engine."""
    if not shares:
        return _FREE
    return Behavior(
        engine_mean=min(0.97, sum(b.engine_mean * milligpu / 1000 for b, milligpu in shares)),
        engine_swing=max(b.engine_swing * milligpu / 1000 for b, milligpu in shares),
        memory_ratio=min(0.95, sum(b.memory_ratio * milligpu / 1000 for b, milligpu in shares)),
    )


def _engine(key: str, behavior: Behavior, draw: Random, tick: int) -> float:
    if behavior.idle:
        return 0.0
    turn = Random(key)
    wave = math.sin(2 * math.pi * (tick / turn.uniform(8, 60) + turn.random()))
    # Work never reads as exactly nothing: an idle verdict must come from a device that does nothing.
    return max(0.015, _clamp(behavior.engine_mean + behavior.engine_swing * (0.7 * wave + draw.uniform(-0.3, 0.3))))


def _power(behavior: Behavior, engine: float, limit: float) -> float:
    floor = _LOADED_POWER_RATIO if behavior.memory_ratio > 0.1 else _IDLE_POWER_RATIO
    return limit * (floor + (0.94 - floor) * math.pow(engine, 0.85))


def _memory_used(behavior: Behavior, total: int, draw: Random) -> int:
    used = total * behavior.memory_ratio * draw.uniform(0.985, 1.015)
    return round(min(used, 0.98 * total) / MIB) * MIB


def _memory(gpu: Gpu) -> int | None:
    if gpu.memory_total_bytes is not None:
        return gpu.memory_total_bytes
    profile = card(gpu.model)
    return None if profile is None else profile.memory_total_mib * MIB


def _clamp(ratio: float) -> float:
    return max(0.0, min(1.0, ratio))
