# ruff: noqa: E501 (exposition lines stay as exporters write them)
from __future__ import annotations

from dataclasses import replace

import pytest

from gpuwatch.errors import SourceError
from gpuwatch.fit.booking import book
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.sources.prometheus import PrometheusSettings, PrometheusSource
from gpuwatch.sources.prometheus.queries import snapshot_queries
from tests.builders import NOW
from tests.dialects.exposition import samples
from tests.sources.fake_prometheus import Fake, as_bytes, as_json, fake_prometheus, vector

pytestmark = pytest.mark.server

SERIES = """
kube_node_info{node="n1"} 1
kube_node_status_capacity{node="n1",resource="nvidia_com_gpu"} 2
kube_node_status_allocatable{node="n1",resource="nvidia_com_gpu"} 2
kube_node_status_condition{node="n1",condition="Ready",status="true"} 1
kube_pod_status_phase{namespace="ml",pod="a",uid="a",phase="Running"} 1
kube_pod_info{namespace="ml",pod="a",uid="a",node="n1"} 1
kube_pod_container_resource_requests{namespace="ml",pod="a",uid="a",container="c",node="n1",resource="nvidia_com_gpu"} 1
up{job="dcgm",instance="n1:9400",node="n1"} 1
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0",Hostname="n1",job="dcgm",instance="n1:9400",namespace="ml",pod="a"} 88
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-1",Hostname="n1",job="dcgm",instance="n1:9400"} 0
"""
WINDOW = {
    "peak": 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0",Hostname="n1",job="dcgm",instance="n1:9400",namespace="ml",pod="a"} 99',
    "samples": """
        up{job="dcgm",instance="n1:9400",node="n1"} 120
        DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0",Hostname="n1",job="dcgm",instance="n1:9400",namespace="ml",pod="a"} 119
    """,
}  # fmt: skip
QUERIES = {query.name: query for query in snapshot_queries(PrometheusSettings())}
REQUIRED = [name for name, query in QUERIES.items() if query.required]
OPTIONAL = [name for name, query in QUERIES.items() if not query.required]


@pytest.fixture
def fake():
    with fake_prometheus() as server:
        read = samples(SERIES)
        for statistic, text in WINDOW.items():
            read += samples(text, statistic)  # type: ignore[arg-type]
        server.serve(tuple(QUERIES.values()), read)
        yield server


def source(fake: Fake, **changes) -> PrometheusSource:
    return PrometheusSource(replace(PrometheusSettings(url=fake.url, timeout_seconds=5, backoff_seconds=0), **changes))


def fail(fake: Fake, name: str) -> None:
    fake.answers[QUERIES[name].text] = [as_json(500, {"status": "error", "errorType": "internal", "error": "boom"})]


def allocated(snapshot: ClusterSnapshot) -> list[int]:
    return [1000 - left for left in book(snapshot).nodes["n1"].left_milligpu]


def test_a_whole_answer_gives_a_whole_cluster(fake):
    snapshot = source(fake).read(NOW)
    assert snapshot.taken_at == NOW
    assert [health.ok for health in snapshot.sources] == [True]
    assert allocated(snapshot) == [1000, 0]
    busy, quiet = snapshot.nodes[0].gpus
    assert busy.activity is not None
    assert (busy.activity.peak_ratio, busy.activity.samples, busy.activity.samples_expected) == (0.99, 119, 120)
    assert (quiet.activity, quiet.activity_reason) == (None, "no_series")
    assert snapshot.findings == ()


@pytest.mark.parametrize("name", REQUIRED)
def test_without_a_required_answer_there_is_no_snapshot(fake, name):
    fail(fake, name)
    with pytest.raises(SourceError) as caught:
        source(fake).read(NOW)
    assert caught.value.code == "http_status"
    assert caught.value.tried == f"query {name}"


@pytest.mark.parametrize("name", OPTIONAL)
def test_without_another_answer_its_part_is_unknown_and_the_counts_stand(fake, name):
    fail(fake, name)
    snapshot = source(fake).read(NOW)
    assert [len(node.gpus) for node in snapshot.nodes] == [2]
    assert sum(allocated(snapshot)) == 1000
    failed = [health for health in snapshot.sources if not health.ok]
    assert [(health.name, health.cause) for health in failed] == [(f"prometheus:127.0.0.1/{name}", "http_status")]
    assert "query_failed" in {finding.code for finding in snapshot.findings}


def test_devices_that_could_not_be_read_are_unknown_and_not_idle(fake):
    fail(fake, "devices")
    gpus = source(fake).read(NOW).nodes[0].gpus
    assert {gpu.telemetry_reason for gpu in gpus} == {"query_failed"}
    assert all(gpu.telemetry is None for gpu in gpus)
    assert all(gpu.health != "unhealthy" for gpu in gpus)


@pytest.mark.parametrize("name", ["scrapes", "counts"])
def test_a_window_of_unknown_fullness_gives_no_activity(fake, name):
    fail(fake, name)
    gpu = source(fake).read(NOW).nodes[0].gpus[0]
    assert gpu.activity is None
    assert gpu.activity_reason in ("scrapes_unknown", "no_window")


def test_a_partial_answer_is_not_a_smaller_cluster(fake):
    fake.answers[QUERIES["nodes"].text] = [vector([], warnings=["a store did not reply"])]
    with pytest.raises(SourceError) as caught:
        source(fake).read(NOW)
    assert caught.value.code == "partial"


def test_an_empty_server_is_an_error_and_not_an_empty_cluster(fake):
    fake.answers.clear()
    with pytest.raises(SourceError, match="knows no node and no GPU") as caught:
        source(fake, matchers={"cluster": "typo"}).read(NOW)
    assert caught.value.code == "bad_answer"


def test_exporters_that_are_missing_are_told(fake):
    for name in ("pod_requests", "pod_phases", "pods", "nodes", "node_conditions"):
        fake.answers[QUERIES[name].text] = [vector([])]
    snapshot = source(fake).read(NOW)
    assert {"no_node_series", "no_pod_series", "requests_unknown"} <= {f.code for f in snapshot.findings}
    assert [job.id for job in snapshot.jobs] == ["ml/a"]


def test_queries_are_few_bounded_and_carry_the_matchers(fake):
    fake.otherwise = as_bytes(500, b"boom")
    with pytest.raises(SourceError):
        source(fake, matchers={"cluster": 'a"b'}, max_concurrency=2).read(NOW)
    assert fake.most_at_once <= 2
    assert len(fake.asked) == len(QUERIES) <= 12
    assert all('cluster="a\\"b"' in form["query"] for form in fake.asked)


def test_the_cluster_is_called_as_its_matcher_unless_told():
    assert PrometheusSettings(matchers={"cluster": "a"}).cluster_name == "a"
    assert PrometheusSettings(matchers={"cluster": "a"}, cluster="b").cluster_name == "b"
    assert PrometheusSettings().cluster_name == "default"


def test_doctor_sees_what_is_there_and_what_is_missing(fake):
    fake.answers["time()"] = [
        as_json(200, {"status": "success", "data": {"resultType": "scalar", "result": [0, str(NOW.timestamp() + 4)]}})
    ]
    told = source(fake).describe(NOW)
    assert told.dialects == ("dcgm", "kube_state_metrics", "scrape")
    assert told.spellings == ("Hostname", "UUID", "pod")
    assert (told.nodes, told.pods, told.devices) == (1, 1, 2)
    assert told.clock_skew_seconds == pytest.approx(4, abs=2)  # less what asking took
    assert "power" in told.missing
    assert "utilization" not in told.missing


def test_a_slow_answer_is_not_a_clock_that_is_ahead(fake, monkeypatch):
    """The server's clock reads 3 s more than when the question was made, and 3 s have passed since."""
    fake.answers["time()"] = [
        as_json(200, {"status": "success", "data": {"resultType": "scalar", "result": [0, str(NOW.timestamp() + 3)]}})
    ]
    ticks = iter([100.0, 103.0])
    monkeypatch.setattr("gpuwatch.sources.prometheus.source.monotonic", lambda: next(ticks))
    assert source(fake).describe(NOW).clock_skew_seconds == 0


def test_doctor_on_a_dead_server_is_an_error(fake):
    fake.answers.clear()
    fake.otherwise = as_bytes(502, b"gone")
    with pytest.raises(SourceError):
        source(fake).describe(NOW)
