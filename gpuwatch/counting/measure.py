"""What one device (or MIG instance) shows over its window, as clauses with numbers. Knows devices, not jobs."""

from __future__ import annotations

import math
from typing import Literal

from gpuwatch.model.catalogue import card, slices_of
from gpuwatch.model.cluster import Activity, Gpu, MigInstance
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.units import MIB
from gpuwatch.model.values import value


@value
class Clause:
    """One condition with its number and bound. `value` None: not measured, and then not held.

    `failure` is the reason code when it does not hold.
    """

    name: str
    failure: str
    held: bool
    value: float | None
    bound: float
    unit: str
    at_least: bool = True  # the bound is a floor; otherwise a ceiling

    @property
    def strain(self) -> float:
        """How near to failing: larger is nearer. For choosing which device speaks, not for people."""
        number = 0.0 if self.value is None else self.value
        return self.bound - number if self.at_least else number - self.bound


@value
class DeviceMeasure:
    """The measured state of one device or instance.

    active: work seen. shared: work seen, several jobs hold it, nobody can say whose. idle: a whole window without work.
    unknown: anything else, with its reason. Ratios are 0..1; None when not measured.
    """

    state: Literal["active", "shared", "idle", "unknown"]
    reason: str
    detail: str = ""
    clauses: tuple[Clause, ...] = ()
    signal: str = "none"
    window_seconds: int = 0
    samples: int = 0
    samples_expected: int = 0
    peak_ratio: float | None = None
    mean_ratio: float | None = None
    peak_memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    mean_power_watts: float | None = None
    loaded: bool = False


def measure(gpu: Gpu, mig_instance: str | None, sharers: int, settings: AnalysisSettings) -> DeviceMeasure:
    """Measures `gpu`, or one instance of it; `sharers` is the number of jobs that hold the same device or instance."""
    instance = next((i for i in gpu.mig_instances if i.id == mig_instance), None) if mig_instance else None
    if mig_instance and instance is None:
        return DeviceMeasure(state="unknown", reason="unknown_instance", detail=f"no instance {mig_instance} there")
    activity = instance.activity if instance else gpu.activity
    if activity is None:
        reason = "no_telemetry" if instance else gpu.activity_reason or gpu.telemetry_reason or "no_telemetry"
        return DeviceMeasure(state="unknown", reason=reason, detail=f"device {gpu.index} has no activity readings")
    return _judge(activity, gpu, instance, sharers, settings)


def memory_total_bytes(gpu: Gpu, instance: MigInstance | None = None) -> int | None:
    """Memory of the device or instance: measured first, then the catalogue's figure; None when nobody knows."""
    told = instance.telemetry if instance else gpu.telemetry
    if told and told.memory_total_bytes:
        return told.memory_total_bytes
    known = card(gpu.model)
    whole = gpu.memory_total_bytes or (known.memory_total_mib * MIB if known else None)
    if whole is None or instance is None:
        return whole
    return whole * instance.memory_slices // slices_of(gpu.model)[1]


def _judge(
    activity: Activity, gpu: Gpu, instance: MigInstance | None, sharers: int, settings: AnalysisSettings
) -> DeviceMeasure:
    peak = _ratio(activity.peak_ratio)
    seen = _samples_ratio(activity)
    total = memory_total_bytes(gpu, instance)
    used = activity.peak_memory_used_bytes
    full = used / total if used is not None and total else None
    loaded = full is not None and full >= settings.loaded_memory_ratio
    clauses = (
        _floor("window", "window_too_short", float(activity.window_seconds), settings.idle_window_seconds, "seconds"),
        _floor("samples", "insufficient_samples", seen, settings.idle_min_samples_ratio, "ratio"),
        Clause(
            name="peak",
            failure="measured_active",
            held=peak is not None and peak < settings.idle_peak_ratio,
            value=peak,
            bound=settings.idle_peak_ratio,
            unit="ratio",
            at_least=False,
        ),
        *([_floor("memory_in_use", "not_loaded", full, settings.loaded_memory_ratio, "ratio")] if loaded else []),
    )
    state, reason, detail = _state(activity, peak, clauses, sharers, gpu, settings)
    return DeviceMeasure(
        state=state,
        reason=reason,
        detail=detail,
        clauses=clauses,
        signal=activity.signal,
        window_seconds=activity.window_seconds,
        samples=activity.samples,
        samples_expected=activity.samples_expected,
        peak_ratio=peak,
        mean_ratio=_ratio(activity.mean_ratio),
        peak_memory_used_bytes=used,
        memory_total_bytes=total,
        mean_power_watts=_ratio(activity.mean_power_watts),
        loaded=loaded,
    )


def _state(
    activity: Activity,
    peak: float | None,
    clauses: tuple[Clause, ...],
    sharers: int,
    gpu: Gpu,
    settings: AnalysisSettings,
) -> tuple[Literal["active", "shared", "idle", "unknown"], str, str]:
    where = f"device {gpu.index}"
    if peak is None or activity.signal == "none":
        return "unknown", "no_telemetry", f"{where}: no usable activity sample"
    if peak >= settings.idle_peak_ratio:
        # One sample of work is proof, however few samples there are.
        if sharers > 1:
            return "shared", "shared_device", f"{where} works, and {sharers} jobs share it"
        return "active", "measured_active", f"{where}: peak {peak:g}"
    if gpu.mig_enabled and activity.signal == "utilization":
        return "unknown", "signal_unfit_for_mig", f"{where}: the utilization counter reads 0 in MIG mode"
    failed = next((c for c in clauses if not c.held), None)
    if failed is None:
        return "idle", "measured_idle", f"{where}: peak {peak:g}"
    return "unknown", failed.failure, _shortfall(failed, activity, where, settings)


def _shortfall(failed: Clause, activity: Activity, where: str, settings: AnalysisSettings) -> str:
    if failed.name != "samples":
        return f"{where}: {failed.value:g} {failed.unit}, needs {failed.bound:g}"
    needed = math.ceil(settings.idle_min_samples_ratio * activity.samples_expected) - activity.samples
    return f"{where}: {activity.samples} of {activity.samples_expected} samples, {max(1, needed)} more needed"


def _floor(name: str, failure: str, number: float | None, bound: float, unit: str) -> Clause:
    held = number is not None and number >= bound
    return Clause(name=name, failure=failure, held=held, value=number, bound=float(bound), unit=unit)


def _ratio(number: float | None) -> float | None:
    """The number when it can be one; a blank sentinel, NaN or a negative reading is no reading."""
    return number if number is not None and math.isfinite(number) and 0 <= number < 2**62 else None


def _samples_ratio(activity: Activity) -> float | None:
    if activity.samples_expected <= 0:
        return None
    return min(1.0, max(0, activity.samples) / activity.samples_expected)  # replicas may double samples
