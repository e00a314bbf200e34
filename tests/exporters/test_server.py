"""The replay as a process: every page over HTTP, faults, discovery, a real Prometheus on it, and a clean end."""

from __future__ import annotations

import contextlib
import gzip
import json
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests import servers
from tests.servers import EXPORTER, fetch, get, prometheus, wait_for

REPOSITORY = Path(__file__).parents[2]
pytestmark = pytest.mark.server


@contextlib.contextmanager
def replay(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """The process and its base URL, taken from the target list."""
    sd = folder / "targets.json"
    command = [*EXPORTER, "replay", "--listen", "127.0.0.1:0", "--sd-file", str(sd), *options]
    with servers.running(command, folder / "log", lambda: json.loads(sd.read_text())) as process:
        yield process, f"http://{json.loads(sd.read_text())[0]['targets'][0]}"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    tmp = tmp_path_factory.mktemp("replay")
    with replay(tmp, "--refresh-seconds", "0.5") as (_, base):
        wait_for("ready", lambda: fetch(base + "/-/ready").status == 200)
        yield base, tmp


def test_every_listed_target_answers_what_it_should(running) -> None:
    base, tmp = running
    groups = json.loads((tmp / "targets.json").read_text())
    assert groups == json.loads(fetch(base + "/sd").body)
    assert len(groups) == 41
    codes = {}
    for group in groups:
        answer = fetch(base + group["labels"]["__metrics_path__"])
        codes[group["labels"]["instance"]] = answer.status
        if answer.status == 200:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert sum(len(f.samples) for f in text_string_to_metric_families(answer.body.decode())) > 5
    assert [name for name, code in codes.items() if code != 200] == ["h100-10", "a100-80-03"]
    assert codes["h100-10"] == 503


def test_health_landing_and_unknown_pages(running) -> None:
    base, _ = running
    assert fetch(base + "/-/healthy").status == 200
    landing = fetch(base + "/")
    assert landing.status == 200
    assert landing.headers["Content-Type"].startswith("text/html")
    assert b"Nothing here is measured" in landing.body
    for path in ("/nope", "/nodes/nope/metrics", "/nodes/h100-01", "/nodes/../metrics", "/nodes//metrics"):
        assert fetch(base + path).status == 404, path
    assert fetch(base + "/nodes/h100-01/metrics?x=1").status == 200


def test_packed_pages_hold_the_same_text_and_head_has_no_body(running) -> None:
    base, _ = running
    url = base + "/sd"
    plain, packed = fetch(url), fetch(url, **{"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    request = urllib.request.Request(base + "/nodes/h100-01/metrics", method="HEAD")
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert int(answer.headers["Content-Length"]) > 10_000
        assert answer.read() == b""
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(urllib.request.Request(url, method="POST", data=b"x"), timeout=10)
    assert caught.value.code == 501


def test_it_counts_its_own_answers_and_refreshes(running) -> None:
    base, _ = running

    def own() -> dict[tuple, float]:
        families = text_string_to_metric_families(get(base + "/metrics")[1])
        return {(s.name, *sorted(s.labels.values())): s.value for f in families for s in f.samples}

    fetch(base + "/nope")
    assert own()["gpuwatch_replay_requests_total", "404", "other"] >= 1
    before = own()["gpuwatch_replay_refreshes_total",]
    wait_for("a refresh", lambda: own()["gpuwatch_replay_refreshes_total",] > before)
    assert own()["gpuwatch_replay_refresh_failures_total",] == 0
    assert own()["gpuwatch_replay_gpus",] == 276


@pytest.mark.parametrize("path", ["/metrics", "/kube-state-metrics/metrics"])
def test_promtool_finds_nothing_to_say(running, promtool_program: str, path: str) -> None:
    base, _ = running
    done = subprocess.run(
        [promtool_program, "check", "metrics"], input=fetch(base + path).body, capture_output=True, timeout=30
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_taken_port_is_told_with_a_way_out(running) -> None:
    base, _ = running
    address = base.removeprefix("http://")
    command = [*EXPORTER, "replay", "--listen", address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert f"cannot listen on {address}" in done.stderr
    assert "--listen" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_cleanly_while_a_client_hangs(tmp_path: Path, number: signal.Signals) -> None:
    with replay(tmp_path) as (process, base):
        host, port = base.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as hanging:
            hanging.sendall(b"GET /metrics HT")
            began = time.monotonic()
            process.send_signal(number)
            assert process.wait(10) == 0
        assert time.monotonic() - began < 5
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_a_real_prometheus_reads_the_fleet_with_the_example_configuration(
    running, prometheus_program: str, tmp_path: Path
) -> None:
    _, tmp = running
    example = (REPOSITORY / "deploy/prometheus/replay.yml").read_text()
    listed = "/tmp/gpuwatch-replay/targets.json"
    assert listed in example
    config = tmp_path / "prometheus.yml"
    config.write_text(
        example.replace(listed, str(tmp / "targets.json"))
        .replace("scrape_interval: 15s", "scrape_interval: 2s")
        .replace("scrape_timeout: 10s", "scrape_timeout: 2s")
    )
    with prometheus(prometheus_program, tmp_path, config) as server:
        wait_for("all nodes", lambda: server.number('count(up{job="dcgm-exporter"} == 1)') == 37, seconds=60)
        wait_for("the silent ones", lambda: server.number('count(up{job="dcgm-exporter"} == 0)') == 2, seconds=60)
        gpus = 'sum(kube_node_status_capacity{resource="nvidia_com_gpu"})'
        server.wait_for(gpus)
        assert server.number(gpus) == 276 - 12 - 8
        assert server.number('sum(kube_node_status_capacity{resource="nvidia_com_gpu_shared"})') == 8 * 4
        assert server.number('count(DCGM_FI_DEV_GPU_TEMP{pod="rlhf-hung-0",namespace="language"})') == 4
        assert server.number("count(count by (UUID) (DCGM_FI_DEV_POWER_USAGE))") == 276 - 16 - 1
