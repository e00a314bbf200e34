"""One device's or slice's newest readings and window: what was seen, how much of it, and why the rest is missing."""

from __future__ import annotations

from collections.abc import Mapping

from gpuwatch.assemble.devices import Identity, Series
from gpuwatch.model.cluster import Activity, Telemetry
from gpuwatch.model.observations import ScrapeTarget

# Engine activity is the better signal: it is true of slices too, and does not call a waiting kernel work.
SIGNALS = (("engine_active", "engine_active_ratio"), ("utilization", "utilization_ratio"))
_EXPECTED_FIELDS = (
    "utilization_ratio",
    "engine_active_ratio",
    "memory_used_bytes",
    "memory_total_bytes",
    "power_watts",
    "power_limit_watts",
    "temperature_celsius",
)


def telemetry(now: Mapping[str, float], absent: Mapping[str, str]) -> Telemetry:
    """The newest readings. `absent`: field -> reason, for fields that must not be read here even if a series has them;
    every other field without a series is missing as "no_series"."""
    got = {name: number for name, number in now.items() if name not in absent}
    missing = {name: absent.get(name, "no_series") for name in _EXPECTED_FIELDS if name not in got}
    total = _total_bytes(now)
    if total is not None and "memory_total_bytes" not in absent:
        missing.pop("memory_total_bytes", None)
    else:
        total = None
    used = got.get("memory_used_bytes")
    xid = got.get("xid", 0)
    return Telemetry(
        utilization_ratio=got.get("utilization_ratio"),
        engine_active_ratio=got.get("engine_active_ratio"),
        memory_used_bytes=None if used is None else round(used),
        memory_total_bytes=total,
        power_watts=got.get("power_watts"),
        power_limit_watts=got.get("power_limit_watts"),
        temperature_celsius=got.get("temperature_celsius"),
        xid=round(xid) or None,
        missing=missing,
    )


def _total_bytes(now: Mapping[str, float]) -> int | None:
    """The reported total, else the sum of the parts: used and free alone leave out what the driver reserves."""
    if now.get("memory_total_bytes"):
        return round(now["memory_total_bytes"])
    if "memory_used_bytes" in now and "memory_free_bytes" in now:
        parts = ("memory_used_bytes", "memory_free_bytes", "memory_reserved_bytes")
        return round(sum(now.get(part, 0.0) for part in parts)) or None
    return None


def activity(
    series: Series,
    board: Series,
    *,
    window_seconds: int | None,
    scrapes: Mapping[ScrapeTarget, int],
    scrape_interval_seconds: float | None,
    slice_only: bool = False,
) -> tuple[Activity | None, str | None]:
    """(Activity, None), or (None, reason: no_window, no_series or scrapes_unknown).

    `board` is where power is found, and the device's scrapes. A slice (`slice_only`) has no utilization of its own.
    """
    if window_seconds is None:
        return None, "no_window"
    signals = SIGNALS[:1] if slice_only else SIGNALS
    for signal, name in signals:
        window = series.window.get(name)
        if not window or not any(stats.get("samples") or "peak" in stats for stats in window.values()):
            continue
        beside = len({identity for identity in window if identity in series.live}) > 1
        expected = _expected(window, scrapes, window_seconds, scrape_interval_seconds, beside)
        if expected is None:
            return None, "scrapes_unknown"
        seen = _samples(window, beside)
        memory = _peak(series.window.get("memory_used_bytes"))
        return Activity(
            window_seconds=window_seconds,
            samples=min(seen, expected),
            samples_expected=expected,
            peak_ratio=_peak(window),
            mean_ratio=_mean(window, beside),
            peak_memory_used_bytes=None if memory is None else round(memory),
            mean_power_watts=None if slice_only else _mean(board.window.get("power_watts"), beside),
            signal=signal,
        ), None
    return None, "no_series"


Window = Mapping[Identity, Mapping[str, float]]


def _samples(window: Window, beside: bool) -> int:
    counts = [round(stats.get("samples", 0.0)) for stats in window.values()]
    # Side by side (pods that share the device) each series covers the window; one after the other they add up.
    return max(counts) if beside else sum(counts)


def _expected(
    window: Window,
    scrapes: Mapping[ScrapeTarget, int],
    window_seconds: int,
    scrape_interval_seconds: float | None,
    beside: bool,
) -> int | None:
    """How many samples the window should hold: the scrapes that were due, and never fewer than were seen.

    Where the interval is known, the clock says what was due. None when neither is known: a window of which nobody
    knows how full it is proves nothing.
    """
    targets = {target for _, target in window if target is not None}
    if not scrape_interval_seconds and not targets & scrapes.keys():
        return None
    due = [scrapes.get(target, 0) for target in targets]
    by_clock = round(window_seconds / scrape_interval_seconds) if scrape_interval_seconds else 0
    return max(max(due, default=0), by_clock, _samples(window, beside))


def _peak(window: Window | None) -> float | None:
    return max((stats["peak"] for stats in (window or {}).values() if "peak" in stats), default=None)


def _mean(window: Window | None, beside: bool) -> float | None:
    parts = [(stats["mean"], stats.get("samples", 1.0)) for stats in (window or {}).values() if "mean" in stats]
    if not parts:
        return None
    total = sum(weight for _, weight in parts)
    if beside or total == 0:
        return max(mean for mean, _ in parts)
    return sum(mean * weight for mean, weight in parts) / total
