"""An application over a state that holds one hand-built evaluation, on a clock that stands still."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from gpuwatch.api.app import create_app
from gpuwatch.clock import FixedClock
from gpuwatch.daemon.state import DaemonState
from gpuwatch.model.placement import PlacementAdvice
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.snapshot import SourceHealth
from gpuwatch.web.pages import pages
from tests.builders import NOW, a_job, a_node, a_snapshot
from tests.evaluations import an_evaluation

ASKED: list = []


def place(snapshot, request, settings, evaluation_id):
    ASKED.append(request)
    return PlacementAdvice(evaluation_id=evaluation_id, policy=request.policy, feasible=False, blockers={"cordoned": 1})


@pytest.fixture
def clock():
    return FixedClock(NOW)


@pytest.fixture
def state(clock):
    made = DaemonState(AnalysisSettings(), clock, interval_seconds=30)
    health = SourceHealth(name="file:x", kind="file", ok=True, observed_at=NOW)
    made.publish(
        evaluation=an_evaluation(),
        snapshot=a_snapshot(a_node(), jobs=[a_job("j1", "n1", [0])]),
        sources=(health,),
        source_ok=True,
        last_try_at=NOW,
        evaluations=1,
    )
    return made


@pytest.fixture
def client(state):
    ASKED.clear()
    app = create_app(state, place, pages=pages(state))
    return TestClient(app, raise_server_exceptions=False)


@pytest.fixture
def asked():
    return ASKED
