"""What the replay says about itself."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import generate_latest

from gpuwatch import __version__
from gpuwatch_exporters.replay.frames import Replay


class SelfMetrics:
    """Renders /metrics. `requests` counts answers by page kind and status code."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._registry = CollectorRegistry(auto_describe=False)
        self.requests = Counter(
            "gpuwatch_replay_requests", "Answers by kind of page and status.", ("page", "code"), registry=self._registry
        )
        self._registry.register(self)

    def render(self) -> str:
        """The page as text."""
        return generate_latest(self._registry).decode()

    def collect(self) -> Iterator[Metric]:
        """Families read from the replay at this moment."""
        replay = self._replay
        info = InfoMetricFamily("gpuwatch_replay_build", "What is replayed, by which version.")
        info.add_metric((), {"version": __version__, "world": replay.world.kind})
        yield info
        yield CounterMetricFamily("gpuwatch_replay_refreshes", "Refreshes done.", value=replay.refreshes)
        yield CounterMetricFamily("gpuwatch_replay_refresh_failures", "Refreshes failed.", value=replay.failures)
        yield GaugeMetricFamily(
            "gpuwatch_replay_refresh_duration_seconds", "Length of the last refresh.", value=replay.refresh_seconds
        )
        frame = replay.frame
        if frame is None:
            return
        yield GaugeMetricFamily(
            "gpuwatch_replay_refreshed_timestamp_seconds", "When the frame was made.", value=frame.at.timestamp()
        )
        yield GaugeMetricFamily("gpuwatch_replay_nodes", "Nodes served.", value=len(frame.nodes))
        gpus = sum(len(node.gpus) for node in frame.nodes.values())
        yield GaugeMetricFamily("gpuwatch_replay_gpus", "GPUs of the nodes served.", value=gpus)
        jobs = GaugeMetricFamily("gpuwatch_replay_jobs", "Jobs by phase.", labels=("phase",))
        for phase, count in sorted(Counts(job.phase for job in frame.snapshot.jobs).items()):
            jobs.add_metric((phase,), count)
        yield jobs
