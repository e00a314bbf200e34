"""A cluster served as scrape pages and read back is the same cluster: devices, holds, free capacity, blocks, demand."""

from __future__ import annotations

from collections import Counter

import pytest
from gpuwatch_exporters.replay.dcgm import Style
from gpuwatch_exporters.replay.frames import ExporterDownError, Replay
from gpuwatch_exporters.replay.worlds import GeneratedWorld

from gpuwatch.assemble.snapshot import assemble
from gpuwatch.dialects.dialect import observe
from gpuwatch.fit.booking import book
from gpuwatch.model.observations import Sample
from gpuwatch.model.snapshot import ClusterSnapshot
from tests.builders import NOW
from tests.dialects.exposition import samples


def scraped(replay: Replay) -> list[Sample]:
    frame = replay.frame
    assert frame is not None
    read = samples(frame.kube_state.plain.decode(), job="kube-state-metrics", instance="kube-state-metrics")
    for name, node in frame.nodes.items():
        if not node.gpus:
            continue
        target = {"job": "dcgm-exporter", "instance": name}
        try:
            page = replay.node_page(name)
            up = 1.0
            read += samples(page.plain.decode(), **target) if page else []
        except ExporterDownError:
            up = 0.0
        read.append(Sample(metric="up", labels=target, value=up))
    return read


@pytest.fixture(scope="module", params=[("old", "Hostname"), ("new", "hostname")], ids=["old", "new"])
def both(request) -> tuple[ClusterSnapshot, ClusterSnapshot]:
    names, spelling = request.param
    replay = Replay(GeneratedWorld(NOW, seed=7, speed=0), Style(names, spelling), NOW)
    replay.refresh(NOW)
    assert replay.frame is not None
    return replay.frame.snapshot, assemble(observe(scraped(replay)), cluster="demo", taken_at=NOW)


def by_node(snapshot: ClusterSnapshot) -> dict[str, tuple]:
    return {
        name: (len(node.node.gpus), sum(node.left_milligpu), sum(node.free_milligpu), bool(node.node.block_causes))
        for name, node in book(snapshot).nodes.items()
    }


def test_every_node_has_the_same_devices_and_the_same_free_capacity(both):
    told, read = both
    assert by_node(read) == by_node(told)


def test_slices_and_their_holds_are_the_same(both):
    told, read = both

    def slices(snapshot: ClusterSnapshot) -> dict[str, Counter]:
        return {
            name: Counter(
                (gpu.index, part.profile, any(hold.mig_instance == part.id for hold in holds))
                for gpu, holds in zip(node.node.gpus, node.holds, strict=True)
                for part in gpu.mig_instances
            )
            for name, node in book(snapshot).nodes.items()
        }

    assert slices(read) == slices(told)


def test_models_pools_and_health_are_the_same(both):
    told, read = both

    def facts(snapshot: ClusterSnapshot) -> dict[str, list]:
        return {
            n.name: [n.pool, *sorted((g.index, g.model, g.health == "unhealthy") for g in n.gpus)]
            for n in snapshot.nodes
        }

    assert facts(read) == facts(told)


def test_demand_is_the_same(both):
    told, read = both

    def demand(snapshot: ClusterSnapshot) -> Counter:
        total: Counter = Counter()
        for job in snapshot.jobs:
            if job.phase != "finished":
                for member in job.members:
                    total[job.kind, job.phase, member.node is not None] += job.shape.milligpu
        return total

    def rounded(total: Counter) -> dict:
        return {key: round(amount, -1) for key, amount in total.items()}  # a third of a device is 333 thousandths

    assert rounded(demand(read)) == rounded(demand(told))


def test_telemetry_comes_back(both):
    told, read = both
    readings = {(n.name, g.index): g.telemetry for n in read.nodes for g in n.gpus}
    for node in told.nodes:
        for gpu in node.gpus:
            back = readings[node.name, gpu.index]
            assert (back is None) == (gpu.telemetry is None)
            if back and gpu.telemetry and gpu.telemetry.power_watts is not None:
                assert back.power_watts == pytest.approx(gpu.telemetry.power_watts, rel=0.01)
