"""The whole chain on real parts: trace -> replay exporter -> Prometheus -> daemon -> metrics, API and command line.

The trace's own counts, taken in process by placing its jobs, must come out equal at every end.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpuwatch.counting.waterfall import waterfalls
from gpuwatch.fit.booking import book
from gpuwatch.model.evaluation import Waterfall
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.sources.trace import TraceSource
from tests.builders import NOW
from tests.servers import EXPORTER, GPUWATCH, Prometheus, free_port, get, get_json, prometheus, running, wait_for

pytestmark = [pytest.mark.server, pytest.mark.traces, pytest.mark.timeout(280)]

LOAD = 0.8
SEED = 42


@dataclass(frozen=True)
class Chain:
    """The addresses of the running parts, and what the trace itself says."""

    expected: Waterfall
    daemon: str
    config: Path


@pytest.fixture(scope="module")
def chain(traces: Path, prometheus_program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    folder = tmp_path_factory.mktemp("chain")
    openb = str(traces / "openb")
    targets = folder / "targets.json"
    replay = [
        *EXPORTER, "replay", "--trace", openb, "--load", str(LOAD), "--seed", str(SEED),
        "--listen", f"127.0.0.1:{free_port()}", "--sd-file", str(targets), "--refresh-seconds", "30",
    ]  # fmt: skip
    scrape = {
        "job_name": "replay",
        "honor_labels": True,
        "scrape_interval": "8s",
        "scrape_timeout": "8s",
        "file_sd_configs": [{"files": [str(targets)], "refresh_interval": "1s"}],
    }
    port = free_port()
    config = folder / "gpuwatch.toml"
    with (
        running(replay, folder / "replay.log", targets.exists, seconds=60),
        prometheus(prometheus_program, folder / "prometheus", {"scrape_configs": [scrape]}) as server,
    ):
        snapshot = TraceSource(openb, load_ratio=LOAD, policy="best_fit", seed=SEED).read(NOW)
        expected = waterfalls(book(snapshot), snapshot.taken_at, AnalysisSettings())[0]
        every = len(json.loads(targets.read_text()))
        wait_for("all targets scraped", lambda: _up(server) == every, seconds=90, every=0.5)
        config.write_text(
            f'cluster = "openb"\ninterval_seconds = 60\n[listen]\nport = {port}\n'
            f'[store]\nurl = "sqlite:///{folder / "store.db"}"\n'
            f'[[source]]\nkind = "prometheus"\nurl = "{server.url}"\n'
        )
        daemon = f"http://127.0.0.1:{port}"
        serve = [*GPUWATCH, "serve", "--config", str(config)]
        with running(serve, folder / "serve.log", lambda: get(f"{daemon}/readyz")[0] == 200, seconds=90):
            yield Chain(expected=expected, daemon=daemon, config=config)


def _up(server: Prometheus) -> float:
    return server.number('count(up{job!=""} == 1)') or 0


def _gpus(milligpu: int) -> float:
    return milligpu / 1000


def test_the_trace_is_what_we_think(chain: Chain) -> None:
    assert chain.expected.installed_milligpu == 6_212_000
    # 80% of all GPUs are asked for; best_fit places all of that demand.
    assert chain.expected.allocated_milligpu == pytest.approx(LOAD * 6_212_000, rel=0.001)
    assert chain.expected.free_milligpu == chain.expected.schedulable_milligpu - chain.expected.allocated_milligpu


def test_metrics_agree_with_the_trace(chain: Chain) -> None:
    status, text = get(f"{chain.daemon}/metrics")
    assert status == 200
    seen: dict[str, float] = {}
    for line in text.splitlines():
        if line.startswith("gpuwatch_gpus{"):
            state = line.split('state="')[1].split('"')[0]
            seen[state] = seen.get(state, 0.0) + float(line.rsplit(" ", 1)[1])
    for state in ("installed", "allocated", "free"):
        assert seen[state] == pytest.approx(_gpus(getattr(chain.expected, f"{state}_milligpu")), abs=1e-6), state


def test_api_agrees_with_the_trace(chain: Chain) -> None:
    waterfall = get_json(f"{chain.daemon}/api/v1/evaluation")["waterfall"]
    for state in ("installed", "healthy", "schedulable", "allocated", "free"):
        assert waterfall[f"{state}_milligpu"] == getattr(chain.expected, f"{state}_milligpu"), state


def test_command_line_agrees_with_the_trace(chain: Chain) -> None:
    done = subprocess.run(
        [*GPUWATCH, "recommend", "--server", chain.daemon, "-o", "json"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    waterfall = json.loads(done.stdout)["waterfall"]
    for state in ("installed", "allocated", "free"):
        assert waterfall[f"{state}_milligpu"] == getattr(chain.expected, f"{state}_milligpu"), state


def test_a_placement_is_answered_from_memory(chain: Chain) -> None:
    done = subprocess.run(
        [*GPUWATCH, "place", "--server", chain.daemon, "--gpus", "1", "--cpu", "4", "-o", "json"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["feasible"] is True


def test_one_shot_evaluation_from_the_configuration_agrees_too(chain: Chain) -> None:
    done = subprocess.run(
        [*GPUWATCH, "fragmentation", "--config", str(chain.config), "-o", "json"],
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["free_milligpu"] == chain.expected.free_milligpu
