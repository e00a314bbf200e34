"""The public fields of every document."""

from __future__ import annotations

from datetime import timedelta, timezone

from gpuwatch.render.documents import (
    forecasts_document,
    fragmentation_document,
    placement_document,
    recommendations_document,
    waterfall_document,
)
from gpuwatch.render.plain import time_text
from tests.builders import NOW
from tests.render.evaluations import a_partial_evaluation, a_placement, an_evaluation

ENVELOPE = {"schema", "evaluation_id", "cluster", "snapshot_taken_at", "items", "skipped"}


def test_fragmentation_fields() -> None:
    document = fragmentation_document(an_evaluation())
    assert document.keys() >= ENVELOPE | {
        *("fragmentation_index", "fgd_ratio", "free_milligpu", "stranded_milligpu", "by_cause", "shapes", "scopes"),
        "waterfall",
    }
    assert document["shapes"][0].keys() >= {"shape", "share_ratio", "fits_now", "stranded_milligpu"}
    waterfall = document["waterfall"]
    ladder = [waterfall[step] for step in ("installed", "healthy", "schedulable", "allocated", "active")]
    assert ladder == [64.0, 62.0, 54.0, 40.5, 30.0]
    assert waterfall["installed_milligpu"] == 64_000
    assert document["items"] == [{key: document[key] for key in document["items"][0]}, *document["scopes"]]


def test_a_broken_stage_is_null_and_skipped_never_zero() -> None:
    document = fragmentation_document(a_partial_evaluation())
    assert document["fragmentation_index"] is None
    assert document["free_milligpu"] is None
    assert document["reason"] == "stage_failed"
    assert document["items"] == []
    assert document["skipped"] == [{"stage": "mix", "reason": "ValueError", "detail": "boom"}]
    assert waterfall_document(a_partial_evaluation())["items"] == []


def test_a_stage_is_skipped_only_where_it_matters() -> None:
    assert forecasts_document(a_partial_evaluation())["skipped"] == []


def test_recommendation_fields() -> None:
    document = recommendations_document(an_evaluation())
    assert document["items"][0].keys() >= {
        *("id", "rule", "severity", "confidence", "subject", "summary", "facts", "recoverable", "risk", "commands"),
        *("evidence", "unlocks", "first_seen_at", "valid_until"),
    }
    assert document["items"][0]["valid_until"] == "2026-03-02T13:00:00Z"
    assert document["items"][1]["recoverable"]["cost"] is None
    assert document["items"][1]["recoverable"]["missing"]["cost"] == "no price for L40S"
    assert document["skipped"] == [
        {"rule": "idle_held", "subject": "ml/young", "reason": "warm_up", "detail": "120 s old"}
    ]


def test_forecast_fields() -> None:
    known, short = forecasts_document(an_evaluation())["items"]
    assert known["target"] == {
        "pool": "train",
        "kind": "all",
        "tenant": None,
        "gpu_model": None,
        "quantity": "demand_gpus",
    }
    assert known["status"] == "ok"
    assert known["steps"][0]["intervals"] == {"0.8": [27.5, 33.0], "0.95": [25.0, 36.25]}
    assert short["steps"] == []
    assert short["reason"] == "2 of 4 days of history"


def test_placement_fields() -> None:
    document = placement_document(a_placement(), an_evaluation())
    assert document.keys() >= ENVELOPE | {"feasible", "choices", "blockers"}
    assert document["choices"][0]["assignments"][0]["gpus"] == [0, 1]
    assert document["items"] == document["choices"]


def test_times_are_utc_whatever_zone_they_came_in() -> None:
    east = NOW.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert time_text(east) == "2026-03-02T12:00:00Z"
    assert time_text(NOW + timedelta(microseconds=5)) == "2026-03-02T12:00:00.000005Z"
