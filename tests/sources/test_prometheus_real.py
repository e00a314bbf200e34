# ruff: noqa: E501 (exposition lines stay as exporters write them)
"""The queries mean what they should on the real server: scrapes, windows, history, moved labels."""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gpuwatch.errors import SourceError
from gpuwatch.fit.booking import book
from gpuwatch.model.history import ALL_POOLS
from gpuwatch.sources.prometheus import PrometheusSettings, PrometheusSource
from tests.servers import pages, prometheus, wait_for

pytestmark = pytest.mark.server

KUBE = """
kube_node_info{node="n1"} 1
kube_node_info{node="n2"} 1
kube_node_labels{node="n1",label_gpuwatch_io_pool="big",label_nvidia_com_gpu_product="NVIDIA-H100-80GB-HBM3"} 1
kube_node_labels{node="n2",label_gpuwatch_io_pool="small",label_nvidia_com_gpu_product="Tesla-T4",label_nvidia_com_gpu_replicas="4"} 1
kube_node_status_capacity{node="n1",resource="nvidia_com_gpu"} 4
kube_node_status_allocatable{node="n1",resource="nvidia_com_gpu"} 4
kube_node_status_capacity{node="n2",resource="nvidia_com_gpu"} 4
kube_node_status_allocatable{node="n2",resource="nvidia_com_gpu"} 4
kube_node_status_condition{node="n1",condition="Ready",status="true"} 1
kube_node_status_condition{node="n1",condition="Ready",status="false"} 0
kube_node_status_condition{node="n2",condition="Ready",status="true"} 1
kube_node_spec_unschedulable{node="n1"} 0
kube_pod_info{namespace="ml",pod="train",uid="1",node="n1"} 1
kube_pod_info{namespace="ml",pod="done",uid="2",node="n1"} 1
kube_pod_info{namespace="ml",pod="wait",uid="3",node=""} 1
kube_pod_labels{namespace="ml",pod="train",uid="1",label_gpuwatch_io_kind="training"} 1
kube_pod_owner{namespace="ml",pod="wait",uid="3",owner_kind="Job",owner_name="w",owner_is_controller="true"} 1
kube_pod_status_phase{namespace="ml",pod="train",uid="1",phase="Running"} 1
kube_pod_status_phase{namespace="ml",pod="train",uid="1",phase="Succeeded"} 0
kube_pod_status_phase{namespace="ml",pod="done",uid="2",phase="Succeeded"} 1
kube_pod_status_phase{namespace="ml",pod="wait",uid="3",phase="Pending"} 1
kube_pod_status_phase{namespace="ml",pod="share",uid="4",phase="Running"} 1
kube_pod_status_unschedulable{namespace="ml",pod="wait",uid="3"} 1
kube_pod_container_resource_requests{namespace="ml",pod="train",uid="1",container="c",node="n1",resource="nvidia_com_gpu"} 2
kube_pod_container_resource_requests{namespace="ml",pod="done",uid="2",container="c",node="n1",resource="nvidia_com_gpu"} 4
kube_pod_container_resource_requests{namespace="ml",pod="wait",uid="3",container="c",resource="nvidia_com_gpu"} 8
kube_pod_container_resource_requests{namespace="ml",pod="share",uid="4",container="c",node="n2",resource="nvidia_com_gpu"} 1
kube_pod_container_resource_requests{namespace="ml",pod="frac",uid="5",container="c",node="n1",resource="alibabacloud_com_gpu_count"} 1
kube_pod_container_resource_requests{namespace="ml",pod="frac",uid="5",container="c",node="n1",resource="alibabacloud_com_gpu_milli"} 500
kube_pod_status_phase{namespace="ml",pod="frac",uid="5",phase="Running"} 1
"""
N1 = """
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0",modelName="NVIDIA H100 80GB HBM3",Hostname="n1",namespace="ml",pod="train"} 88
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-1",modelName="NVIDIA H100 80GB HBM3",Hostname="n1",namespace="ml",pod="train"} 0
DCGM_FI_DEV_GPU_UTIL{gpu="2",UUID="GPU-2",modelName="NVIDIA H100 80GB HBM3",Hostname="n1"} 0
DCGM_FI_DEV_GPU_UTIL{gpu="3",UUID="GPU-3",modelName="NVIDIA H100 80GB HBM3",Hostname="n1"} 0
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-0",modelName="NVIDIA H100 80GB HBM3",Hostname="n1",namespace="ml",pod="train"} 0.91
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-0",modelName="NVIDIA H100 80GB HBM3",Hostname="n1",namespace="ml",pod="train"} 612.5
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-0",modelName="NVIDIA H100 80GB HBM3",Hostname="n1",namespace="ml",pod="train"} 1024
DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-1",modelName="NVIDIA H100 80GB HBM3",Hostname="n1",namespace="ml",pod="train"} 9223372036854775794
"""
TEXTS = {"/kube": KUBE.lstrip(), "/n1": N1.lstrip(), "/n2": ""}
HOURS = 6
GAP_HOUR = 2


def scrape(address: str, job: str, path: str, instance: str, honor: bool) -> dict:
    return {
        "job_name": f"{job}{path}",
        "honor_labels": honor,
        "metrics_path": path,
        "static_configs": [{"targets": [address], "labels": {"instance": instance}}],
        # One job for all exporters, as service discovery gives it; the label that honor_labels moves aside is `pod`.
        "relabel_configs": [
            {"target_label": "job", "replacement": job},
            {"target_label": "pod", "replacement": f"{job}-0"},
            {"target_label": "namespace", "replacement": "monitoring"},
        ],
    }


def past(end: datetime, honor: bool) -> str:
    """The state of KUBE at each hour before `end` but one, as OpenMetrics, with the labels that a scrape would store."""
    lines: dict[str, list[str]] = {}
    for hour in range(HOURS):
        if hour == GAP_HOUR:
            continue
        at = int((end - timedelta(hours=HOURS - 1 - hour)).timestamp())
        for line in (KUBE if honor else moved(KUBE)).strip().splitlines():
            lines.setdefault(line.split("{")[0], []).append(f"{line} {at}")
    return "".join(f"# TYPE {name} gauge\n" + "\n".join(mine) + "\n" for name, mine in lines.items()) + "# EOF\n"


def moved(text: str) -> str:
    for name in ("namespace", "pod"):
        text = text.replace(f'{name}="', f'exported_{name}="')
    return text.replace("{", '{namespace="monitoring",pod="kube-state-metrics-0",')


@pytest.fixture(scope="module", params=[True, False], ids=["honor_labels", "moved_labels"])
def source(request, prometheus_program, promtool_program, tmp_path_factory):
    folder = tmp_path_factory.mktemp("prometheus")
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    with pages(TEXTS) as address:
        configs = [
            scrape(address, "kube-state-metrics", "/kube", "kube:8080", request.param),
            scrape(address, "dcgm", "/n1", "n1:9400", request.param),
            scrape(address, "dcgm", "/n2", "n2:9400", request.param),
        ]
        backfill = folder / "backfill.txt"
        backfill.write_text(past(hour, request.param))
        command = [promtool_program, "tsdb", "create-blocks-from", "openmetrics", str(backfill), str(folder / "data")]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        with prometheus(
            prometheus_program, folder, {"scrape_configs": configs}, "--storage.tsdb.retention.time=30d"
        ) as server:
            made = PrometheusSource(PrometheusSettings(url=server.url, window_seconds=10, timeout_seconds=10))

            def whole() -> bool:
                try:
                    snapshot = made.read(datetime.now(UTC))
                except SourceError:
                    return False
                gpus = [gpu for node in snapshot.nodes for gpu in node.gpus]
                return len(gpus) == 5 and any(gpu.activity and gpu.activity.samples >= 3 for gpu in gpus)

            wait_for("a snapshot of all devices with a window", whole, seconds=40)
            yield made


def test_counts(source):
    snapshot = source.read(datetime.now(UTC))
    booked = book(snapshot)
    assert {name: [1000 - left for left in node.left_milligpu] for name, node in booked.nodes.items()} == {
        "n1": [1000, 1000, 500, 0],
        "n2": [250],
    }
    assert {node.name: node.pool for node in snapshot.nodes} == {"n1": "big", "n2": "small"}
    assert {job.id: job.phase for job in snapshot.jobs} == {
        "ml/train": "running",
        "ml/share": "running",
        "ml/frac": "running",
        "ml/wait": "pending",
    }
    assert [health.ok for health in snapshot.sources] == [True]


def test_windows_and_sentinels(source):
    snapshot = source.read(datetime.now(UTC))
    first, second = snapshot.nodes[0].gpus[:2]
    assert first.activity is not None
    assert first.activity.signal == "engine_active"
    assert first.activity.peak_ratio == pytest.approx(0.91)
    assert first.activity.mean_power_watts == pytest.approx(612.5)
    assert first.activity.peak_memory_used_bytes == 2**30
    assert 0 < first.activity.samples <= first.activity.samples_expected <= 12
    assert second.activity is not None
    assert second.activity.signal == "utilization"
    assert second.activity.peak_memory_used_bytes is None
    assert any(finding.code == "samples_sentinel" for finding in snapshot.findings)


def test_a_young_server_fills_no_long_window(source):
    long = PrometheusSource(replace(source.settings, window_seconds=1800))
    gpu = long.read(datetime.now(UTC)).nodes[0].gpus[0]
    assert gpu.activity is not None
    assert 0 < gpu.activity.samples < 0.95 * gpu.activity.samples_expected


def test_an_exporter_that_is_down_is_not_an_idle_node(source):
    snapshot = source.read(datetime.now(UTC))
    (gpu,) = snapshot.nodes[1].gpus
    assert gpu.telemetry is None
    assert gpu.telemetry_reason in ("exporter_down", "no_series")
    assert gpu.replicas == 4
    assert gpu.health != "unhealthy"


def test_history(source):
    now = datetime.now(UTC)
    history = source.demand_history(now, HOURS)
    values = {(series.pool, series.kind): series.values for series in history.series}
    assert {len(hours) for hours in values.values()} == {HOURS}
    assert values["big", "training"][0] == 2
    assert values["big", "all"][0] == 2.5
    assert values["big", "unknown"][0] == 0.5
    assert values["small", "all"][0] == 0.25
    assert values[ALL_POOLS, "batch"][0] == 8
    assert values["big", "all"].count(None) >= 1
    assert all(series.values[GAP_HOUR] is None for series in history.series)


def test_doctor(source):
    told = source.describe(datetime.now(UTC))
    assert told.devices == 4
    assert told.failures == {}
    assert abs(told.clock_skew_seconds) < 30
    assert "temperature" in told.missing
    assert ("exported_pod" in told.spellings) or ("pod" in told.spellings)


def test_a_wrong_matcher_and_a_broken_query_are_told(source):
    wrong = PrometheusSource(PrometheusSettings(url=source.settings.url, matchers={"cluster": "nowhere"}))
    with pytest.raises(SourceError, match="knows no node"):
        wrong.read(datetime.now(UTC))
    with source._client() as client, pytest.raises(SourceError) as caught:
        client.instant("broken", "sum(", None)
    assert caught.value.code == "query_error"


def test_a_read_is_quick(source):
    started = time.perf_counter()
    source.read(datetime.now(UTC))
    assert time.perf_counter() - started < 5
