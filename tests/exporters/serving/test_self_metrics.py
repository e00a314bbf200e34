"""What the exporter tells of its process, compared with what the system tells."""

from __future__ import annotations

import os
import time
from pathlib import Path

import prometheus_client
import pytest
from gpuwatch_exporters.serving.cycles import Cycles
from gpuwatch_exporters.serving.self_metrics import SelfMetrics
from prometheus_client.parser import text_string_to_metric_families

from tests.exporters.serving.tiny import Tiny
from tests.processes import printed


@pytest.fixture
def metrics(tmp_path: Path) -> SelfMetrics:
    return SelfMetrics("tiny", Cycles(Tiny(tmp_path / "page"), 10, lambda _: None))


def read(text: str) -> dict[str, float]:
    return {
        sample.name + "".join(sample.labels.get(name, "") for name in ("code", "result", "generation")): sample.value
        for each in text_string_to_metric_families(text)
        for sample in each.samples
    }


def test_the_process_is_told_as_the_usual_client_tells_it(metrics: SelfMetrics) -> None:
    ours = read(metrics.process_text())
    usual = prometheus_client.CollectorRegistry()
    prometheus_client.ProcessCollector(registry=usual)
    theirs = read(prometheus_client.generate_latest(usual).decode())
    assert theirs.keys() <= ours.keys()
    assert ours["process_start_time_seconds"] == pytest.approx(theirs["process_start_time_seconds"], abs=2)
    assert ours["process_cpu_seconds_total"] == pytest.approx(theirs["process_cpu_seconds_total"], abs=0.5)
    for name, within in (("resident_memory_bytes", 5e6), ("virtual_memory_bytes", 5e7), ("open_fds", 3)):
        assert ours[f"process_{name}"] == pytest.approx(theirs[f"process_{name}"], abs=within)
    assert ours["process_max_fds"] == theirs["process_max_fds"]


def test_the_garbage_collector_is_told_under_its_usual_names(metrics: SelfMetrics) -> None:
    ours = read(metrics.process_text())
    assert {f"python_gc_collections_total{number}" for number in range(3)} <= ours.keys()
    assert ours["python_gc_objects_collected_total0"] >= 0


def test_open_descriptors_follow_what_is_open(metrics: SelfMetrics) -> None:
    before = read(metrics.process_text())["process_open_fds"]
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(5)]
    assert read(metrics.process_text())["process_open_fds"] == before + 5
    for each in held:
        os.close(each)


def test_scrapes_and_readings_of_the_configuration_are_counted_by_result(metrics: SelfMetrics) -> None:
    assert read(metrics.text(0))["gpuwatch_exporter_scrapes_total200"] == 0  # there from the start: rates need a zero
    assert "gpuwatch_exporter_web_config_reloads_totalsuccess" not in read(metrics.text(0))
    for code in (200, 200, 401):
        metrics.scraped(code)
    metrics.reloaded(True)
    metrics.reloaded(False)
    found = read(metrics.text(0))
    assert found["gpuwatch_exporter_scrapes_total200"] == 2
    assert found["gpuwatch_exporter_scrapes_total401"] == 1
    assert found["gpuwatch_exporter_web_config_reloads_totalsuccess"] == 1
    assert found["gpuwatch_exporter_web_config_reloads_totalfailure"] == 1
    assert found["gpuwatch_exporter_web_config_last_reload_timestamp_seconds"] == pytest.approx(time.time(), abs=60)


def test_serving_without_a_web_configuration_loads_neither_tls_nor_yaml_nor_the_client_library() -> None:
    heavy = printed(
        "import sys; import gpuwatch_exporters.serving; "
        "print(sorted({'ssl', 'yaml', 'bcrypt', 'prometheus_client', 'asyncio', 'http.server'} & sys.modules.keys()))"
    )
    assert heavy == "[]"
