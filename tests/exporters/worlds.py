"""Replays of every world for tests, and their pages read as a scraper would read them."""

from __future__ import annotations

from datetime import UTC, datetime

from gpuwatch_exporters.replay.dcgm import Style
from gpuwatch_exporters.replay.frames import ExporterDownError, Replay
from gpuwatch_exporters.replay.worlds import GeneratedWorld, World
from prometheus_client.parser import text_string_to_metric_families

from gpuwatch.model.observations import Sample

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


def replay_of(world: World, at: datetime = NOW, names: str = "old", nodes: int | None = None) -> Replay:
    style = Style(names=names, hostname_label={"old": "Hostname", "new": "hostname"}[names])
    replay = Replay(world, style, NOW, nodes)
    replay.refresh(at)
    return replay


def generated(seed: int = 7, **options) -> Replay:
    return replay_of(GeneratedWorld(NOW, seed=seed), **options)


def samples_of(text: str, job: str, instance: str) -> list[Sample]:
    """What a scraper that honors labels keeps of one page."""
    target = {"job": job, "instance": instance}
    return [
        Sample(metric=sample.name, labels={**target, **sample.labels}, value=sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]


def scrape(replay: Replay) -> list[Sample]:
    """One scrape of every target, with the `up` series that the scraper adds."""
    frame = replay.frame
    assert frame is not None
    samples = samples_of(frame.kube_state.plain.decode(), "kube-state-metrics", "kube-state-metrics")
    for name, node in frame.nodes.items():
        if not node.gpus:
            continue
        try:
            page = replay.node_page(name)
        except ExporterDownError:
            page = None
        labels = {"job": "dcgm-exporter", "instance": name}
        samples.append(Sample(metric="up", labels=labels, value=float(page is not None)))
        if page is not None:
            samples += samples_of(page.plain.decode(), "dcgm-exporter", name)
    return samples
