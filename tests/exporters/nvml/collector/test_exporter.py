"""The page of the NVML exporter: XIDs, text that parses, a driver that lacks most functions."""

from __future__ import annotations

import ctypes
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pynvml as nv
import pytest
from gpuwatch_exporters.holders import HolderSettings
from gpuwatch_exporters.nvml.exporter import NvmlExporter
from gpuwatch_exporters.nvml.settings import Settings
from prometheus_client.parser import text_string_to_metric_families

from tests.conftest import need_program
from tests.exporters.nvml.collector.stage import Stage, slot
from tests.fake_nvml.harness import SOURCES

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def exporter(stage: Stage) -> Iterator[NvmlExporter]:
    settings = Settings(
        "node-a", interval=2, sysfs=stage.tree.sys, procfs=stage.tree.proc, kernel_log=Path("/dev/null"),
        compats=(),
    )  # fmt: skip
    exporter = NvmlExporter(settings, HolderSettings(sources=()))
    yield exporter
    stage.say()
    exporter.close()


def samples(page: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """By sample name."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(page):
        for each in family.samples:
            found.setdefault(each.name, []).append((dict(each.labels), each.value))
    return found


def one(page: str, name: str, **labels: str) -> float | None:
    """The sample with these labels; None where there is none."""
    found = [number for told, number in samples(page).get(name, []) if labels.items() <= told.items()]
    assert len(found) <= 1, found
    return found[0] if found else None


def until(exporter: NvmlExporter, good: Callable[[str], bool]) -> str:
    end = time.monotonic() + 20
    while not good(page := exporter.cycle()):
        assert time.monotonic() < end, page
        time.sleep(0.05)
    return page


def test_an_xid_is_counted_and_stays_when_the_gpu_is_lost(exporter: NvmlExporter, stage: Stage) -> None:
    stage.bus(2)
    stage.say("gpus 2")
    assert one(exporter.cycle(), "gpuwatch_gpu_xid_errors_total", gpu="1", xid="79") is None
    stage.say("gpus 2", "xid 1 79 1")
    until(exporter, lambda page: one(page, "gpuwatch_gpu_xid_errors_total", gpu="1", xid="79") == 1)
    stage.say("gpus 2", "xid 1 79 1", "err 1 * 15")
    page = until(exporter, lambda page: one(page, "gpuwatch_gpu_up", gpu="1") == 0)
    assert one(page, "gpuwatch_gpu_xid_errors_total", gpu="1", xid="79") == 1
    assert one(page, "gpuwatch_gpu_down_info", gpu="1", reason="lost") == 1
    assert one(page, "gpuwatch_exporter_features", feature="xid_events", state="on") == 1


def test_released_nobody_waits_for_events_any_more(exporter: NvmlExporter, stage: Stage) -> None:
    stage.say("gpus 2")
    exporter.cycle()
    until(exporter, lambda page: bool(event_threads()))
    assert exporter.actions()["release"]().startswith("released")
    assert event_threads() == []
    exporter.cycle()
    assert event_threads() == []
    exporter.actions()["resume"]()
    until(exporter, lambda page: bool(event_threads()))


def event_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name == "nvml-events"]


def test_a_full_node_parses_and_has_each_series_once(exporter: NvmlExporter, stage: Stage) -> None:
    stage.say(*(f"mig {gpu} 1 9856" for gpu in range(16) for _ in range(7)))
    page = exporter.cycle()
    series = [(name, tuple(sorted(labels.items()))) for name, found in samples(page).items() for labels, _ in found]
    assert len(series) == len(set(series)) > 16 * 7 * 10
    assert len({labels["uuid"] for labels, _ in samples(page)["gpuwatch_gpu_up"]}) == 16
    assert len(samples(page)["gpuwatch_gpu_mig_instance_info"]) == 112


def test_promtool_finds_nothing_to_say(exporter: NvmlExporter, stage: Stage, promtool_program: str) -> None:
    stage.bus(8)
    stage.say("gpus 8", "mig 0 3 40448", "err 2 * 15", "xid 1 31 1")
    exporter.cycle()
    page = until(exporter, lambda page: "gpuwatch_gpu_xid_errors_total{" in page)
    done = subprocess.run(
        [promtool_program, "check", "metrics"], input=page, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_old_driver_lacks_functions_and_tells_the_rest(
    exporter: NvmlExporter, stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library from which the newer functions are really missing."""
    script = tmp_path / "old.map"
    script.write_text(
        "{ local: nvmlGpm*; nvmlDeviceGetFieldValues; nvmlDeviceGetGpuInstance*; nvmlDeviceGetMemoryInfo_v2;"
        " *ProcessUtilization; nvmlDeviceGetMigMode; nvmlDeviceGetRemappedRows; *EventReasons; *_v3; *TemperatureV; };"
    )
    old = tmp_path / "old.so"
    sources = [str(each) for each in SOURCES.glob("*.c")]
    options = ["-shared", "-fPIC", f"-Wl,--version-script={script}", "-lpthread"]
    subprocess.run([need_program("gcc"), "-o", str(old), *sources, *options], check=True, timeout=100)
    monkeypatch.setattr(nv, "nvmlLib", ctypes.CDLL(str(old)))
    monkeypatch.setattr(nv, "_nvmlGetFunctionPointer_cache", {})
    stage.bus(2)
    stage.say("gpus 2", "1 util 87")
    page = exporter.cycle()
    assert one(page, "gpuwatch_gpu_up", gpu="1") == 1
    assert one(page, "gpuwatch_gpu_utilization_ratio", gpu="1") == 0.87
    assert one(page, "gpuwatch_gpu_info", gpu="1", pci_bus_id=slot(1)) == 1
    assert one(page, "gpuwatch_exporter_features", feature="mig_mode", state="off", reason="driver_too_old") == 2
    assert not [each for each in samples(page).get("gpuwatch_exporter_call_failures_total", []) if each[1]]
