"""Faults of all kinds in any order: each page is whole, counts never fall, nobody is forgotten, and all heals."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from gpuwatch_exporters.holders import HolderSettings
from gpuwatch_exporters.nvml.exporter import NvmlExporter
from gpuwatch_exporters.nvml.settings import Settings
from prometheus_client.parser import text_string_to_metric_families

from tests.exporters.nvml.collector.stage import Stage, slot

GPUS, CYCLES = 4, 50
CALLS = (
    "*", "nvmlDeviceGetUUID", "nvmlDeviceGetMigMode", "nvmlDeviceGetFieldValues", "nvmlGpmSampleGet",
    "nvmlGpmMetricsGet", "nvmlDeviceGetMigDeviceHandleByIndex", "nvmlDeviceGetName", "nvmlDeviceGetIndex",
    "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetComputeRunningProcesses_v3",
)  # fmt: skip
CODES = (1, 2, 3, 4, 6, 9, 10, 13, 15, 16, 18, 19, 25, 28, 999)
PROFILES = ("1g.10gb", "2g.20gb", "1g.20gb")
OURS = ("gpuwatch_exporter_", "gpuwatch_gpu_xid_", "gpuwatch_gpus_")  # counts of this program, not of a device
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def exporter(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NvmlExporter]:
    for name, number in (
        ("session.FIRST_WAIT_SECONDS", 0.01), ("collector.CLOSE_SECONDS", 0.1), ("xid.events._WAIT_MILLISECONDS", 20),
    ):  # fmt: skip
        monkeypatch.setattr(f"gpuwatch_exporters.nvml.{name}", number)
    settings = Settings(
        "node-a", interval=0.05, device_timeout=0.3, sysfs=stage.tree.sys, procfs=stage.tree.proc,
        kernel_log=Path("/dev/null"), state_file=tmp_path / "state.json",
    )  # fmt: skip
    exporter = NvmlExporter(settings, HolderSettings(sources=()))
    yield exporter
    stage.say()
    exporter.close()


def some_faults(rnd: random.Random, stage: Stage) -> list[str]:
    """Lines of a state, and changes of the bus."""
    lines = []
    for gpu in range(GPUS):
        if rnd.random() < 0.3:
            lines += [f"mig {gpu} {rnd.choice(PROFILES)}" for _ in range(rnd.randint(1, 3))]
        if rnd.random() < 0.15:
            lines.append(f"err {gpu} {rnd.choice(CALLS)} {rnd.choice(CODES)}")
        if rnd.random() < 0.03:
            lines.append(f"hang {gpu}")
        if rnd.random() < 0.1:
            awake = rnd.choice(("suspended", "active"))
            stage.tree.device(slot(gpu), status=awake, driver=rnd.choice(("nvidia", "nvidia", None)))
            if rnd.random() < 0.4:
                stage.tree.unplug(slot(gpu))
    if rnd.random() < 0.1:
        lines.append("driver_gone 1")
    return [*lines, f"gpus {rnd.choice((GPUS, GPUS, GPUS, 2))}"]


def whole(page: str) -> Series:
    """The page's series, each once, with numbers that can be."""
    found: Series = {}
    families = list(text_string_to_metric_families(page))
    assert len({each.name for each in families}) == len(families)
    for each in (sample for family in families for sample in family.samples):
        key = (each.name, frozenset(each.labels.items()))
        assert key not in found, key
        found[key] = each.value
        assert abs(each.value) < 1e19, key  # neither nan nor a mark for "no value"
        assert not each.name.endswith("_ratio") or 0 <= each.value <= 1, (key, each.value)
        assert each.labels.get("reason") != "fault", key
    return found


def numbers(series: Series, name: str) -> list[float]:
    return [number for key, number in series.items() if key[0] == name]


def test_whatever_happens(exporter: NvmlExporter, stage: Stage) -> None:
    rnd = random.Random(3)
    stage.bus(GPUS)
    stage.say(f"gpus {GPUS}")
    before = healed(exporter)
    for cycle in range(CYCLES):
        stage.say(*some_faults(rnd, stage), *(f"xid 1 79 {number}" for number in range(1, cycle)))
        for action, chance in (("release", 0.05), ("resume", 0.3)):
            if rnd.random() < chance:
                exporter.actions()[action]()
        now = whole(exporter.cycle())
        assert len(numbers(now, "gpuwatch_gpu_up")) == GPUS
        assert numbers(now, "gpuwatch_gpus_expected") == [GPUS]
        assert not numbers(now, "gpuwatch_exporter_group_failures_total")
        fell = [key for key, number in before.items() if key[0].endswith("_total") and now.get(key, number) < number]
        assert not [key for key in fell if key[0].startswith(OURS)]
        before = now
    stage.bus(GPUS)
    stage.say(f"gpus {GPUS}")
    exporter.actions()["resume"]()
    healed(exporter)


def healed(exporter: NvmlExporter) -> Series:
    """The first page on which every GPU is up."""
    end = time.monotonic() + 20
    while numbers(series := whole(exporter.cycle()), "gpuwatch_gpu_up") != [1] * GPUS:
        assert time.monotonic() < end
        time.sleep(0.02)
    return series
