"""Every *.yaml file here is a scrape as an operator would see it, and the counts that must come out of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuwatch.assemble.snapshot import assemble
from gpuwatch.counting.waterfall import waterfalls
from gpuwatch.dialects.dialect import observe
from gpuwatch.fit.booking import Booking, book
from gpuwatch.model.cluster import Gpu, MigInstance
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.snapshot import ClusterSnapshot
from tests.builders import NOW
from tests.dialects.exposition import samples

FILES = sorted(Path(__file__).parent.glob("*.yaml"))
STATISTICS = {"series": "now", "peaks": "peak", "means": "mean", "counts": "samples"}


class Seen:
    """The snapshot and its booking, asked in the words of the scenario files."""

    def __init__(self, snapshot: ClusterSnapshot, booking: Booking) -> None:
        self.snapshot, self.booking = snapshot, booking
        self.counted, _ = waterfalls(booking, snapshot.taken_at, AnalysisSettings())
        self.jobs_by_id = {job.id: job for job in snapshot.jobs}
        self.gpus: dict[str, Gpu] = {f"{node.name}/{gpu.index}": gpu for node in snapshot.nodes for gpu in node.gpus}

    def installed(self, _: Any) -> float:
        return self.counted.installed_milligpu / 1000

    def healthy(self, _: Any) -> float:
        return self.counted.healthy_milligpu / 1000

    def schedulable(self, _: Any) -> float:
        return self.counted.schedulable_milligpu / 1000

    def allocated(self, _: Any) -> float:
        return self.counted.allocated_milligpu / 1000

    def free(self, _: Any) -> float:
        return self.counted.free_milligpu / 1000

    def jobs(self, _: Any) -> list[str]:
        return sorted(self.jobs_by_id)

    def terminating(self, _: Any) -> list[str]:
        return sorted(job.id for job in self.snapshot.jobs if all(member.terminating for member in job.members))

    def phases(self, asked: dict[str, str]) -> dict[str, str]:
        return {id_: self.jobs_by_id[id_].phase for id_ in asked}

    def kinds(self, asked: dict[str, str]) -> dict[str, str]:
        return {id_: self.jobs_by_id[id_].kind for id_ in asked}

    def members(self, asked: dict[str, int]) -> dict[str, int]:
        return {id_: len(self.jobs_by_id[id_].members) for id_ in asked}

    def devices(self, asked: dict[str, list[int]]) -> dict[str, list[int]]:
        return {id_: [share.gpu_index for share in self.jobs_by_id[id_].members[0].shares] for id_ in asked}

    def block_causes(self, asked: dict[str, list[str]]) -> dict[str, list[str]]:
        causes = {node.name: list(node.block_causes) for node in self.snapshot.nodes}
        return {name: causes[name] for name in asked}

    def unhealthy(self, _: Any) -> dict[str, list[str]]:
        return {at: list(gpu.health_causes) for at, gpu in self.gpus.items() if gpu.health == "unhealthy"}

    def telemetry_missing(self, asked: dict[str, str]) -> dict[str, str | None]:
        return {at: self.gpus[at].telemetry_reason for at in asked}

    def replicas(self, asked: dict[str, int]) -> dict[str, int]:
        return {at: self.gpus[at].replicas for at in asked}

    def utilization(self, asked: dict[str, float]) -> dict[str, float | None]:
        readings = {at: self.gpus[at].telemetry for at in asked}
        return {at: got.utilization_ratio if got else None for at, got in readings.items()}

    def power(self, asked: dict[str, float]) -> dict[str, float | None]:
        readings = {at: self.gpus[at].telemetry for at in asked}
        return {at: got.power_watts if got else None for at, got in readings.items()}

    def slices(self, asked: dict[str, list[str]]) -> dict[str, list[str]]:
        return {at: [part.profile for part in self.gpus[at].mig_instances] for at in asked}

    def _held(self) -> dict[str, list[str]]:
        return {
            f"{name}/{gpu.index}": [hold.mig_instance for hold in holds if hold.mig_instance]
            for name, node in self.booking.nodes.items()
            for gpu, holds in zip(node.node.gpus, node.holds, strict=True)
        }

    def slices_held(self, asked: dict[str, list[str]]) -> dict[str, list[str]]:
        return {at: self._held()[at] for at in asked}

    def slices_held_count(self, _: Any) -> int:
        return sum(len(held) for held in self._held().values())

    def slice_activity(self, asked: dict[str, list[float | None]]) -> dict[str, list[float | None]]:
        def peak(part: MigInstance) -> float | None:
            return part.activity.peak_ratio if part.activity else None

        return {at: [peak(part) for part in self.gpus[at].mig_instances] for at in asked}

    def activity(self, asked: dict[str, list[float]]) -> dict[str, list[float | None]]:
        windows = {at: self.gpus[at].activity for at in asked}
        return {at: [w.samples, w.samples_expected, w.peak_ratio] if w else [] for at, w in windows.items()}

    def cpu_free(self, asked: dict[str, int]) -> dict[str, int | None]:
        return {name: self.booking.nodes[name].cpu_free_millicores for name in asked}

    def findings(self, asked: list[str]) -> list[str]:
        codes = {finding.code for finding in (*self.snapshot.findings, *self.booking.findings)}
        return [code for code in asked if code in codes]

    def findings_absent(self, asked: list[str]) -> list[str]:
        codes = {finding.code for finding in (*self.snapshot.findings, *self.booking.findings)}
        return [code for code in asked if code not in codes]


def seen(scenario: dict[str, Any]) -> Seen:
    read = [
        sample
        for section, statistic in STATISTICS.items()
        for sample in samples(scenario.get(section, ""), statistic)  # type: ignore[arg-type]
    ]
    snapshot = assemble(observe(read, scenario.get("window_seconds")), cluster="scenario", taken_at=NOW)
    return Seen(snapshot, book(snapshot))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario(path):
    scenario = yaml.safe_load(path.read_text(encoding="utf-8"))
    facts = seen(scenario)
    got = {name: getattr(facts, name)(wanted) for name, wanted in scenario["expect"].items()}
    assert got == scenario["expect"], f"{scenario['title']}\nfindings: {facts.snapshot.findings}"


def test_there_are_scenarios():
    assert len(FILES) >= 25
