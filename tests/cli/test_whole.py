"""The command line over the real engine: the generated cluster, a recorded file, a public trace, a running daemon."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.servers import GPUWATCH, announced, get, running, wait_for

LADDER = ("installed", "healthy", "schedulable", "allocated", "active")


def test_the_demo_prints_everything_and_at_least_five_recommendations(run: Run) -> None:
    ended = run("demo", "--once")
    assert ended.code == 0
    summary = json.loads(run("demo", "--once", "-o", "json", "-q").out)
    assert len(summary["items"]) >= 5
    assert 0 < summary["fragmentation"]["fragmentation_index"] < 100
    assert any(item["status"] == "ok" for item in summary["forecasts"]["items"])
    counted = [summary["waterfall"]["items"][0][step] for step in LADDER]
    assert counted == sorted(counted, reverse=True)
    assert counted[-1] > 0
    for item in summary["items"][:5]:
        assert item["summary"] in re.sub(r"\s+", " ", ended.out)


def test_two_runs_print_the_same_bytes(run: Run) -> None:
    first, again, other = (run("demo", "--once", "--seed", seed, "-o", "json").out for seed in (7, 7, 8))
    assert first == again != other


def test_a_recorded_snapshot_answers_as_the_cluster_did(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "now.json"
    assert run("snapshot", "record", "--trace", "demo", "--output-file", path).code == 0
    live = json.loads(run("fragmentation", "--trace", "demo", "-o", "json").out)
    recorded = json.loads(run("fragmentation", "--snapshot", path, "-o", "json").out)
    for field in ("fragmentation_index", "fgd_ratio", "by_cause", "shapes", "scopes", "waterfall"):
        assert recorded[field] == live[field]


def test_place_refuses_and_offers_a_change_that_does_fit(run: Run) -> None:
    document = json.loads(run("place", "--trace", "demo", "--gpus", "8", "--members", "2", "-o", "json").out)
    assert document["feasible"] is False
    assert document["nearest_fix"]
    assert sum(document["blockers"].values()) > 0
    fits = json.loads(run("place", "--trace", "demo", "--gpus", "1", "--top", "3", "-o", "json").out)
    assert [choice["rank"] for choice in fits["choices"]] == [1, 2, 3]


@pytest.mark.traces
def test_the_trace_is_empty_until_it_is_loaded(run: Run, traces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUWATCH_TRACES", str(traces))
    empty = json.loads(run("fragmentation", "--trace", "openb", "-o", "json").out)
    assert empty["waterfall"]["installed"] == 6212
    assert empty["free_milligpu"] == 6_212_000
    full = json.loads(run("fragmentation", "--trace", "openb", "--load", "0.8", "-o", "json").out)
    assert 0.7 < full["waterfall"]["allocated"] / 6212 <= 0.8
    assert full["fragmentation_index"] > empty["fragmentation_index"]
    assert full["shapes"][0]["shape"] == empty["shapes"][0]["shape"]


@pytest.fixture(scope="module")
def demo_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address that a running demo daemon prints."""
    log = tmp_path_factory.mktemp("demo") / "log"
    with running([*GPUWATCH, "demo", "--port", "0"], log, lambda: announced(log)) as process:
        yield announced(log)
    assert process.returncode == 0


@pytest.mark.server
def test_commands_read_a_running_daemon(run: Run, demo_url: str) -> None:
    wait_for("the first evaluation", lambda: get(f"{demo_url}/readyz")[0] == 200, seconds=60)
    ended = run("recommend", "--server", demo_url, "-o", "json")
    assert ended.code == 0, ended.err
    assert len(json.loads(ended.out)["items"]) >= 5
    placed = run("place", "--server", demo_url, "--gpus", "1", "--cpu", "8", "--memory", "16GiB", "-o", "json")
    assert json.loads(placed.out)["feasible"] is True
    refused = run("place", "--server", demo_url, "--gpus", "1", "--policy", "none")
    assert refused.code == 1
    assert "answered 422" in refused.err
    assert "to do: choose one of: best_fit," in refused.err
    assert run("place", "--server", demo_url, "--gpus", "100001").code == 2
    counts = json.loads(run("doctor", "--server", demo_url, "--reconcile", "-o", "json").out)
    assert counts["counts"]["GPUs"] == counts["waterfall"][0]["installed"]
    assert run("forecast", "--server", demo_url, "--kind", "all", "--strict").code == 0


@pytest.mark.server
def test_a_port_that_is_taken_is_told(run: Run, demo_url: str) -> None:
    done = subprocess.run(
        [*GPUWATCH, "demo", "--port", demo_url.rpartition(":")[2]],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "cannot listen on 127.0.0.1" in done.stderr
