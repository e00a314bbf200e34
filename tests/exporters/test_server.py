"""The replay as a process: every page over HTTP, faults, discovery, a real Prometheus on it, and a clean end."""

from __future__ import annotations

import gzip
import json
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

REPOSITORY = Path(__file__).parents[2]
pytestmark = pytest.mark.server


def wait_for(what: Callable[[], object], seconds: float = 30.0) -> object:
    """Polls until `what` gives something true; the last exception is shown when it never does."""
    end, seen = time.monotonic() + seconds, None
    while time.monotonic() < end:
        try:
            if found := what():
                return found
        except (OSError, ValueError, LookupError) as err:
            seen = err
        time.sleep(0.05)
    raise AssertionError(f"nothing after {seconds} s: {seen}")


def get(url: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as err:
        return err.code, dict(err.headers), err.read()


def start(tmp: Path, *options: str) -> tuple[subprocess.Popen, str]:
    """The process and its base URL, taken from the target list."""
    sd = tmp / "targets.json"
    command = [sys.executable, "-m", "gpuwatch_exporters", "replay", "--listen", "127.0.0.1:0", "--sd-file", str(sd)]
    process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
    try:
        groups = wait_for(lambda: process.poll() is None and json.loads(sd.read_text()))
    except AssertionError:
        process.kill()
        raise
    return process, f"http://{groups[0]['targets'][0]}"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[subprocess.Popen, str, Path]]:
    tmp = tmp_path_factory.mktemp("replay")
    process, base = start(tmp, "--refresh-seconds", "0.5")
    wait_for(lambda: get(base + "/-/ready")[0] == 200)
    yield process, base, tmp
    process.kill()
    process.wait(10)


def test_every_listed_target_answers_what_it_should(running) -> None:
    _, base, tmp = running
    groups = json.loads((tmp / "targets.json").read_text())
    assert groups == json.loads(get(base + "/sd")[2])
    assert len(groups) == 41
    codes = {}
    for group in groups:
        status, headers, body = get(base + group["labels"]["__metrics_path__"])
        codes[group["labels"]["instance"]] = status
        if status == 200:
            assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert sum(len(f.samples) for f in text_string_to_metric_families(body.decode())) > 5
    assert [name for name, code in codes.items() if code != 200] == ["h100-10", "a100-80-03"]
    assert codes["h100-10"] == 503


def test_health_landing_and_unknown_pages(running) -> None:
    _, base, _ = running
    assert get(base + "/-/healthy")[0] == 200
    status, headers, body = get(base + "/")
    assert status == 200
    assert headers["Content-Type"].startswith("text/html")
    assert b"Nothing here is measured" in body
    for path in ("/nope", "/nodes/nope/metrics", "/nodes/h100-01", "/nodes/../metrics", "/nodes//metrics"):
        assert get(base + path)[0] == 404, path
    assert get(base + "/nodes/h100-01/metrics?x=1")[0] == 200


def test_packed_pages_hold_the_same_text_and_head_has_no_body(running) -> None:
    _, base, _ = running
    url = base + "/sd"
    plain, packed = get(url), get(url, **{"Accept-Encoding": "gzip"})
    assert packed[1]["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed[2]) == plain[2]
    request = urllib.request.Request(base + "/nodes/h100-01/metrics", method="HEAD")
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert int(answer.headers["Content-Length"]) > 10_000
        assert answer.read() == b""
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(urllib.request.Request(url, method="POST", data=b"x"), timeout=10)
    assert caught.value.code == 501


def test_it_counts_its_own_answers_and_refreshes(running) -> None:
    _, base, _ = running

    def own() -> dict[tuple, float]:
        families = text_string_to_metric_families(get(base + "/metrics")[2].decode())
        return {(s.name, *sorted(s.labels.values())): s.value for f in families for s in f.samples}

    get(base + "/nope")
    assert own()["gpuwatch_replay_requests_total", "404", "other"] >= 1
    before = own()["gpuwatch_replay_refreshes_total",]
    wait_for(lambda: own()["gpuwatch_replay_refreshes_total",] > before)
    assert own()["gpuwatch_replay_refresh_failures_total",] == 0
    assert own()["gpuwatch_replay_gpus",] == 276


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
@pytest.mark.parametrize("path", ["/metrics", "/kube-state-metrics/metrics"])
def test_promtool_finds_nothing_to_say(running, path: str) -> None:
    _, base, _ = running
    done = subprocess.run(["promtool", "check", "metrics"], input=get(base + path)[2], capture_output=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_taken_port_is_told_with_a_way_out(running) -> None:
    _, base, _ = running
    address = base.removeprefix("http://")
    command = [sys.executable, "-m", "gpuwatch_exporters", "replay", "--listen", address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert f"cannot listen on {address}" in done.stderr
    assert "--listen" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_cleanly_while_a_client_hangs(tmp_path: Path, number: signal.Signals) -> None:
    process, base = start(tmp_path)
    host, port = base.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as hanging:
        hanging.sendall(b"GET /metrics HT")
        began = time.monotonic()
        process.send_signal(number)
        _, err = process.communicate(timeout=10)
    assert process.returncode == 0
    assert time.monotonic() - began < 5
    assert "Traceback" not in err


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed")
def test_a_real_prometheus_reads_the_fleet_with_the_example_configuration(running, tmp_path: Path) -> None:
    _, _, tmp = running
    example = (REPOSITORY / "deploy/prometheus/replay.yml").read_text()
    listed = "/tmp/gpuwatch-replay/targets.json"
    assert listed in example
    config = tmp_path / "prometheus.yml"
    config.write_text(
        example.replace(listed, str(tmp / "targets.json"))
        .replace("scrape_interval: 15s", "scrape_interval: 1s")
        .replace("scrape_timeout: 10s", "scrape_timeout: 1s")
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:

        def ask(query: str) -> float | None:
            url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
            result = json.loads(get(url)[2])["data"]["result"]
            return float(result[0]["value"][1]) if result else None

        wait_for(lambda: ask('count(up{job="dcgm-exporter"} == 1)') == 37, seconds=60)
        assert ask('count(up{job="dcgm-exporter"} == 0)') == 2
        wait_for(lambda: ask('sum(kube_node_status_capacity{resource="nvidia_com_gpu"})'))
        assert ask('sum(kube_node_status_capacity{resource="nvidia_com_gpu"})') == 276 - 12 - 8
        assert ask('sum(kube_node_status_capacity{resource="nvidia_com_gpu_shared"})') == 8 * 4
        assert ask('count(DCGM_FI_DEV_GPU_TEMP{pod="rlhf-hung-0",namespace="language"})') == 4
        assert ask("count(count by (UUID) (DCGM_FI_DEV_POWER_USAGE))") == 276 - 16 - 1
    finally:
        server.terminate()
        server.wait(20)
