"""A host engine behind NVIDIA's module names, made anew for each test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from gpuwatch_exporters.dcgm.collector import Collector
from gpuwatch_exporters.dcgm.settings import Settings
from gpuwatch_exporters.device.frame import DeviceFrame, Frame

FAKE = Path(__file__).parent / "fake_bindings"
START = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


class HandClock:
    """A clock that a test sets: wall time and steady time go together."""

    def __init__(self) -> None:
        self.at = START

    def now(self) -> datetime:
        return self.at

    def seconds(self) -> float:
        return self.at.timestamp()

    def forward(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


class Host:
    """A collector on a fake host engine."""

    def __init__(self, engine: Any, clock: HandClock, tmp_path: Path) -> None:
        self.engine, self.clock, self._tmp = engine, clock, tmp_path
        self.uuids: dict[tuple[str, int], tuple[str, ...]] = {}
        self.collector: Collector | None = None

    def settings(self, **changes: Any) -> Settings:
        return Settings(**{"node": "n1", "bindings": FAKE, "sysfs": self._tmp / "sys", **changes})

    def open(self, **changes: Any) -> Collector:
        self.collector = Collector(self.settings(**changes), self.clock, lambda _: self.uuids, self.clock.seconds)
        return self.collector

    def cycle(self) -> Frame:
        return (self.collector or self.open()).collect()


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    if str(FAKE) not in sys.path:
        sys.path.append(str(FAKE))
    import dcgm_agent
    import dcgm_fake
    import dcgm_structs

    clock = HandClock()
    engine = dcgm_fake.HostEngine.of_two_gpus()
    engine.now = clock.seconds
    dcgm_agent.engine, dcgm_structs.library_missing = engine, False
    found = Host(engine, clock, tmp_path)
    yield found
    if found.collector:
        found.collector.close()


def value(frame: Frame, family: str, *labels: str, gpu: int = 0) -> float | None:
    """The one value of a family and its own labels on a GPU, None where there is none."""
    return _one(frame.devices[gpu], family, labels)


def _one(device: DeviceFrame, family: str, labels: tuple[str, ...]) -> float | None:
    found = [
        each.number for each in device.values if each.family.name == f"gpuwatch_gpu_{family}" and each.labels == labels
    ]
    assert len(found) < 2
    return found[0] if found else None


def of_node(frame: Frame, name: str, *labels: str) -> float | None:
    """The one value of a node's family with these labels."""
    found = [each.number for each in frame.values if each.family.name == name and each.labels == labels]
    assert len(found) < 2
    return found[0] if found else None


def feature(frame: Frame, name: str) -> dict[tuple[str, str], float]:
    """(state, reason) -> GPUs of one feature."""
    return {
        (each.labels[1], each.labels[2]): each.number
        for each in frame.values
        if each.family.name == "gpuwatch_exporter_features" and each.labels[0] == name
    }
