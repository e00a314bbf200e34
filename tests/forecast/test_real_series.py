"""The procedure on public demand series of 16 virtual clusters: better than the daily repeat, and its band holds."""

from __future__ import annotations

import csv
import gzip
import math
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gpuwatch.forecast.forecast import forecast_series
from gpuwatch.forecast.team import enlist
from gpuwatch.model.history import DemandSeries
from gpuwatch.model.settings import AnalysisSettings

START = datetime(2020, 5, 1, tzinfo=UTC)
HORIZON = 24


def series(traces: Path) -> dict[str, list[float]]:
    """Running plus pending GPUs per virtual cluster and hour."""
    file = traces / "demand" / "helios_earth_vc_hourly.csv.gz"
    if not file.exists():
        pytest.skip(f"no {file}")
    out: dict[str, list[float]] = defaultdict(list)
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            out[row["vc"]].append(float(row["running_gpus_mean"]) + float(row["pending_gpus_mean"]))
    return dict(out)


def mean_error(actual: list[float], forecast: list[float], steps: int) -> float:
    return math.fsum(abs(a - f) for a, f in zip(actual[:steps], forecast[:steps], strict=True)) / steps


@pytest.mark.traces
@pytest.mark.slow
def test_skill_and_coverage_on_public_series(traces):
    settings = AnalysisSettings()
    models = enlist(settings.forecast_models)[0]
    ratios: dict[int, list[float]] = defaultdict(list)
    inside: dict[str, list[bool]] = defaultdict(list)
    shown: list[float] = []
    for pool, values in series(traces).items():
        errors = {steps: [0.0, 0.0] for steps in (1, 6, HORIZON)}
        for end in range(500, len(values) - HORIZON, 23):
            known = tuple(values[:end])
            demand = DemandSeries(pool=pool, kind="all", start_at=START, step_seconds=3600, values=known)
            f = forecast_series(demand, START + timedelta(hours=end), settings, models)
            assert f.status == "ok", f.reason
            came = values[end : end + HORIZON]
            for steps, sums in errors.items():
                sums[0] += mean_error(came, [s.mean_gpus for s in f.steps], steps)
                sums[1] += mean_error(came, values[end - HORIZON : end], steps)
            for level in ("0.8", "0.95"):
                inside[level] += [
                    low <= actual <= high
                    for (low, high), actual in zip((s.intervals[level] for s in f.steps), came, strict=True)
                ]
            shown.append(f.coverage_ratio["0.8"])
        for steps, (own, base) in errors.items():
            if base > 0:
                ratios[steps].append(max(own / base, 1e-3))
    skill = {steps: 1 - math.exp(math.fsum(map(math.log, found)) / len(found)) for steps, found in ratios.items()}
    coverage = {level: sum(found) / len(found) for level, found in inside.items()}
    print(f"skill {skill}, coverage {coverage}, coverage shown {sum(shown) / len(shown):.3f}")
    assert skill[1] > 0.6
    assert skill[6] > 0.3
    assert skill[HORIZON] > 0.0
    assert 0.75 <= coverage["0.8"] <= 0.88
    assert 0.90 <= coverage["0.95"] <= 0.99
    assert abs(sum(shown) / len(shown) - coverage["0.8"]) < 0.06
