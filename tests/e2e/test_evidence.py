"""Every query that advice shows is asked of a real Prometheus, in both generations of names, and must answer what was
printed beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from gpuwatch.engine import evaluate
from gpuwatch.errors import SourceError
from gpuwatch.model.evaluation import Evaluation, Evidence
from gpuwatch.model.history import History
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.sources.prometheus.source import PrometheusSource
from gpuwatch.sources.settings import PrometheusSettings
from tests.servers import EXPORTER, Prometheus, free_port, prometheus, running, wait_for

pytestmark = [pytest.mark.server, pytest.mark.timeout(280)]

WINDOW_SECONDS = 30
SETTINGS = AnalysisSettings(idle_window_seconds=WINDOW_SECONDS, warm_up_seconds=600)
# A value is printed to this many decimals; and a scrape under way while the snapshot was read may count afterwards.
ROUNDING = {"ratio": 1e-9, "bytes": 1.0, "watts": 0.06, "pods": 0.0, "samples": 1.0}


@dataclass(frozen=True)
class Read:
    """One chain: the server, what was read of it, and what came of that."""

    prometheus: Prometheus
    snapshot: ClusterSnapshot
    evaluation: Evaluation


def _read(server: Prometheus) -> Read:
    source = PrometheusSource(PrometheusSettings(url=server.url, window_seconds=WINDOW_SECONDS))
    snapshot = source.read(datetime.now(UTC))
    return Read(server, snapshot, evaluate(snapshot, History(), SETTINGS))


def _full(server: Prometheus) -> bool:
    """Have the windows filled? Then only devices that nobody reads are without a verdict."""
    try:
        read = _read(server)
    except SourceError:  # nothing scraped yet
        return False
    rules = {each.rule for each in read.evaluation.recommendations}
    return rules >= {"idle_held", "tier_mismatch", "consolidate"} and not any(
        each.reason == "insufficient_samples" for each in read.evaluation.abstentions
    )


@pytest.fixture(scope="module")
def chains(prometheus_program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Read]]:
    """Both generations at once: their windows fill in the same time."""
    with ExitStack() as stack:
        servers = {}
        for names in ("old", "new"):
            folder = tmp_path_factory.mktemp(names)
            targets = folder / "targets.json"
            replay = [
                *EXPORTER, "replay", "--speed", "0", "--names", names,
                "--listen", f"127.0.0.1:{free_port()}", "--sd-file", str(targets),
            ]  # fmt: skip
            stack.enter_context(running(replay, folder / "replay.log", targets.exists, seconds=60))
            # The scraper of the new one moves the labels of the pods aside, as one without honor_labels does.
            scrape = {
                "job_name": "replay",
                "honor_labels": names == "old",
                "file_sd_configs": [{"files": [str(targets)], "refresh_interval": "1s"}],
            }
            config = {"global": {"scrape_interval": "2s", "scrape_timeout": "2s"}, "scrape_configs": [scrape]}
            servers[names] = stack.enter_context(prometheus(prometheus_program, folder / "prometheus", config))
        for names, server in servers.items():
            wait_for(f"full windows of {names}", lambda at=server: _full(at), seconds=120, every=2)
        yield {names: _read(server) for names, server in servers.items()}


def _differs(server: Prometheus, evidence: Evidence) -> str | None:
    found = [float(row["value"][1]) for row in server.instant(evidence.query)]
    if evidence.value is None:
        return None if not found else f"said to be unknown ({evidence.reason}), answers {found}"
    if len(found) == 1 and found[0] == pytest.approx(evidence.value, rel=1e-9, abs=ROUNDING[evidence.unit]):
        return None
    return f"printed {evidence.value} {evidence.unit}, answers {found}"


@pytest.mark.parametrize("names", ["old", "new"])
def test_every_query_answers_what_is_printed(chains: dict[str, Read], names: str) -> None:
    read = chains[names]
    asked = [(each, shown) for each in read.evaluation.recommendations for shown in each.evidence]
    assert len(asked) > 80
    wrong = {
        f"{each.rule} {each.subject.name}: {shown.query}": told
        for each, shown in asked
        if (told := _differs(read.prometheus, shown)) is not None
    }
    assert wrong == {}
    assert all(each.evidence for each in read.evaluation.recommendations)


def test_both_generations_give_the_same_advice(chains: dict[str, Read]) -> None:
    # The two worlds stopped a moment apart: a mean near the bound of tier_mismatch may lie on either side of it.
    def told(read: Read) -> set[tuple[str, str, float]]:
        items = (r for r in read.evaluation.recommendations if r.rule != "tier_mismatch")
        return {(r.rule, r.subject.name, r.recoverable.gpus) for r in items}

    assert told(chains["old"]) == told(chains["new"])
    assert chains["old"].evaluation.waterfall == chains["new"].evaluation.waterfall


@pytest.mark.parametrize("names", ["old", "new"])
def test_nothing_unmeasured_and_nothing_at_work_is_called_idle(chains: dict[str, Read], names: str) -> None:
    """Against the newest readings, which the verdict does not look at."""
    read = chains[names]
    gpus = {(node.name, gpu.index): gpu for node in read.snapshot.nodes for gpu in node.gpus}
    for each in read.evaluation.recommendations:
        if each.rule == "idle_held" and each.subject.node is not None:
            for index in each.subject.gpus:
                gpu = gpus[each.subject.node, index]
                told = [part.telemetry for part in gpu.mig_instances] if gpu.mig_enabled else [gpu.telemetry]
                seen = [t.engine_active_ratio for t in told if t and t.engine_active_ratio is not None]
                assert min(seen, default=1.0) < SETTINGS.idle_peak_ratio, (each.subject.name, index)


def test_what_was_planted_is_found(chains: dict[str, Read]) -> None:
    idle = {r.subject.name for r in chains["old"].evaluation.recommendations if r.rule == "idle_held"}
    assert {"vision/eval-forgotten-0", "language/rlhf-hung-0", "platform/chat-model-canary-0"} <= idle
    kept = {(a.subject, a.reason) for a in chains["old"].evaluation.abstentions if a.rule == "idle_held"}
    assert {("platform/demo-booth-0", "protected"), ("vision/being-deleted-0", "terminating")} <= kept
    assert "exporter_down" in {reason for _, reason in kept}


def test_what_was_read_is_told(chains: dict[str, Read]) -> None:
    assert "DCGM_FI_PROF_GR_ENGINE_ACTIVE" in chains["old"].snapshot.metrics
    assert "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO" in chains["new"].snapshot.metrics
    assert {"UUID", "Hostname"} <= set(chains["old"].snapshot.spellings)
    assert {"UUID", "hostname"} <= set(chains["new"].snapshot.spellings)
