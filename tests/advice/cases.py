"""Short ways to run rules on small clusters, and the golden comparison."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

from pydantic import TypeAdapter

from gpuwatch.advice.advise import AdviceContext, advise
from gpuwatch.advice.rule import RULES, Outcome
from gpuwatch.demand.mix import demand_mix
from gpuwatch.fit.booking import book
from gpuwatch.model.evaluation import Recommendation
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.snapshot import ClusterSnapshot
from tests.builders import NOW, a_snapshot

OLD = NOW - timedelta(hours=3)
GOLDEN = Path(__file__).parent / "golden"


def context_of(snapshot: ClusterSnapshot, **settings) -> AdviceContext:
    chosen = AnalysisSettings(**settings)
    booking = book(snapshot)
    return AdviceContext(
        snapshot=snapshot,
        booking=booking,
        mix=demand_mix(snapshot, chosen),
        settings=chosen,
    )


def run(rule: str, *nodes, jobs, arrivals=(), **settings) -> Outcome:
    return RULES.get(rule).run(context_of(a_snapshot(*nodes, jobs=jobs, arrivals=arrivals), **settings))


def advice(*nodes, jobs, **settings):
    return advise(context_of(a_snapshot(*nodes, jobs=jobs), **settings))


def reasons(outcome: Outcome) -> dict[str, str]:
    return {a.subject: a.reason for a in outcome.abstentions}


def matches_golden(name: str, outcome: Outcome) -> None:
    """The whole outcome as text; pytest --update-golden writes it anew for review as a diff."""
    text = TypeAdapter(tuple[Recommendation, ...]).dump_json(outcome.recommendations, indent=1).decode() + "\n"
    file = GOLDEN / f"{name}.json"
    if os.environ.get("GPUWATCH_UPDATE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
