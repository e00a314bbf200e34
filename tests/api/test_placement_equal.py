"""The command line and the API give one answer to one question about one snapshot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from gpuwatch.__main__ import main
from gpuwatch.api.app import create_app
from gpuwatch.clock import FixedClock
from gpuwatch.daemon.state import DaemonState
from gpuwatch.engine import Placements, evaluate
from gpuwatch.model.codec import dump_snapshot
from gpuwatch.model.history import History
from gpuwatch.model.jobs import ShapeCount
from gpuwatch.model.settings import AnalysisSettings
from tests.builders import NOW, a_job, a_node, a_shape, a_snapshot

SNAPSHOT = a_snapshot(
    a_node("h", 8, model="H100-80"),
    a_node("w", 8, model="H200-141", nvlink_domain="rack"),
    a_node("b", 4, model="B200", nvlink_domain="rack"),
    a_node("t", 2, model="T4"),
    jobs=[a_job("x", "h", [0, 1, 2]), a_job("y", "b", [3])],
    arrivals=(ShapeCount(shape=a_shape(1), count=3), ShapeCount(shape=a_shape(8), count=1)),
)

QUESTIONS = (
    {"gpus": 2, "members": 3, "cpu": "500m"},
    {"gpus": 1, "milligpu": 460, "gpu_model": ["NVIDIA H200", "T4"], "top": 2},
    {"gpus": 4, "members": 3, "same_nvlink_domain": True},
    {"gpus": 1, "gpu_memory": "100GiB", "policy": "best_fit"},
    {"model_size": "70B"},
    {"model_size": "180B", "precision": "fp8", "purpose": "training", "members": 2},
    {"gpus": 2, "model_size": "34B", "precision": "fp4", "memory": "64GiB"},
    {"gpus": 1, "mig_profile": "1g.10gb"},
)


@pytest.fixture(scope="module")
def client() -> TestClient:
    state = DaemonState(AnalysisSettings(), FixedClock(NOW), interval_seconds=30)
    evaluation = evaluate(SNAPSHOT, History(), state.settings)
    state.publish(evaluation=evaluation, snapshot=SNAPSHOT, source_ok=True, last_try_at=NOW, evaluations=1)
    return TestClient(create_app(state, Placements()))


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: " ".join(map(str, asked.values())))
def test_both_give_the_same(asked, client, tmp_path: Path, capsys):
    path = tmp_path / "now.json"
    path.write_text(dump_snapshot(SNAPSHOT))
    words = []
    for name, value in asked.items():
        option = f"--{name.replace('_', '-')}"
        words += (
            [option]
            if value is True
            else [w for each in (value if isinstance(value, list) else [value]) for w in (option, str(each))]
        )
    assert main(["place", "--snapshot", str(path), "-o", "json", "-q", *words]) == 0
    told = json.loads(capsys.readouterr().out)
    answered = client.post("/api/v1/placements", json=asked).json()
    assert answered.pop("evaluation_id")
    assert told.pop("evaluation_id")
    assert told == answered
    assert told["choices"] or told["blockers"]
