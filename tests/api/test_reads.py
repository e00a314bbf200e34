"""Read endpoints: the same documents as the command line, one evaluation per answer, errors as problems."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest
from pydantic import TypeAdapter

from gpuwatch.model.codec import load_snapshot
from gpuwatch.model.evaluation import Evaluation
from gpuwatch.render.documents import fragmentation_document, recommendations_document
from tests.builders import NOW
from tests.evaluations import an_evaluation

READS = ("evaluation", "snapshot", "waterfall", "fragmentation", "forecasts", "recommendations", "recommendations/r1")


def problem(response, status, code):
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert (body["status"], body["code"]) == (status, code)
    assert body["type"] == f"urn:gpuwatch:problem:{code}"
    return body


def test_the_evaluation_comes_back_exactly(client):
    answer = client.get("/api/v1/evaluation")
    assert TypeAdapter(Evaluation).validate_json(answer.text) == an_evaluation()


def test_the_snapshot_is_one_that_every_command_accepts(client, state):
    assert load_snapshot(client.get("/api/v1/snapshot").text) == state.view.snapshot


def test_documents_are_those_of_the_renderers(client):
    body = client.get("/api/v1/fragmentation").json()
    assert body.pop("next") is None
    assert body == json.loads(json.dumps(fragmentation_document(an_evaluation())))
    body = client.get("/api/v1/recommendations").json()
    del body["next"]
    assert body == json.loads(json.dumps(recommendations_document(an_evaluation())))


@pytest.mark.parametrize("name", READS)
def test_every_read_names_its_evaluation_and_answers_304(client, name):
    answer = client.get(f"/api/v1/{name}")
    assert answer.status_code == 200
    assert answer.headers["x-snapshot-time"] == "2026-03-02T12:00:00Z"
    assert answer.headers["etag"] == '"abc123"'
    for tag in ('"abc123"', 'W/"abc123"', '"other", "abc123"', "*"):
        again = client.get(f"/api/v1/{name}", headers={"If-None-Match": tag})
        assert (again.status_code, again.content) == (304, b"")
    assert client.get(f"/api/v1/{name}", headers={"If-None-Match": '"other"'}).status_code == 200


@pytest.mark.parametrize("name", READS)
def test_before_the_first_evaluation_every_read_is_a_503(client, state, name):
    state.publish(evaluation=None, snapshot=None)
    body = problem(client.get(f"/api/v1/{name}"), 503, "not_ready")
    assert "no evaluation yet" in body["detail"]


@pytest.mark.parametrize("name", READS)
def test_a_stale_evaluation_is_a_503_that_names_its_age(client, clock, name):
    clock.advance(301)
    answer = client.get(f"/api/v1/{name}")
    body = problem(answer, 503, "stale")
    assert body["age_seconds"] == 301.0
    assert "301 s old" in body["detail"]
    assert answer.headers["retry-after"] == "30"


def test_lists_page_by_an_opaque_cursor(client):
    seen, cursor = [], None
    while True:
        query = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        body = client.get("/api/v1/recommendations", params=query).json()
        seen += [item["id"] for item in body["items"]]
        cursor = body["next"]
        if cursor is None:
            break
    assert seen == ["r1", "r2", "r3"]


def test_a_new_evaluation_does_not_shift_the_next_page(client, state):
    cursor = client.get("/api/v1/recommendations", params={"limit": 1}).json()["next"]
    fresh = replace(an_evaluation(id="new"), recommendations=tuple(reversed(an_evaluation().recommendations)))
    state.publish(evaluation=fresh)
    body = client.get("/api/v1/recommendations", params={"limit": 1, "cursor": cursor})
    assert [item["id"] for item in body.json()["items"]] == []  # r1 is last now: nothing follows it
    state.publish(evaluation=replace(fresh, recommendations=()))
    problem(client.get("/api/v1/recommendations", params={"cursor": cursor}), 410, "cursor_gone")


@pytest.mark.parametrize("cursor", ["%%%", "é", "AAAA====A"])
def test_a_cursor_of_nobody_is_refused(client, cursor):
    answer = client.get("/api/v1/recommendations", params={"cursor": cursor})
    assert answer.status_code in (400, 410)
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "x"])
def test_a_limit_out_of_bounds_is_refused(client, limit):
    body = problem(client.get("/api/v1/recommendations", params={"limit": limit}), 422, "bad_request")
    assert "limit" in body["detail"]


def test_filters_keep_what_they_name(client):
    def ids(**query):
        return [item["id"] for item in client.get("/api/v1/recommendations", params=query).json()["items"]]

    assert ids(kind="consolidate") == ["r2"]
    assert ids(min_severity="warning") == ["r1", "r2"]
    assert ids(kind=["consolidate", "idle_held"], min_severity="critical") == ["r1"]
    assert ids(tenant="nobody") == []
    problem(client.get("/api/v1/recommendations", params={"sort": "beauty"}), 422, "bad_settings")
    problem(client.get("/api/v1/recommendations", params={"min_severity": "huge"}), 422, "bad_request")


def test_one_recommendation_by_id(client):
    assert [i["id"] for i in client.get("/api/v1/recommendations/r2").json()["items"]] == ["r2"]
    problem(client.get("/api/v1/recommendations/none"), 404, "no_such_recommendation")


def test_unknown_paths_and_methods_are_problems(client):
    problem(client.get("/api/v1/nothing"), 404, "not_found")
    problem(client.delete("/api/v1/evaluation"), 405, "method_not_allowed")


def test_a_broken_route_tells_nothing_of_its_inside(client, monkeypatch):
    monkeypatch.setattr("gpuwatch.api.reads.waterfall_document", lambda _: 1 / 0)
    body = problem(client.get("/api/v1/waterfall"), 500, "internal")
    assert "division" not in json.dumps(body)


def test_the_time_of_the_answer_is_that_of_the_snapshot(client):
    assert client.get("/api/v1/waterfall").json()["snapshot_taken_at"] == "2026-03-02T12:00:00Z"
    assert NOW.isoformat() == "2026-03-02T12:00:00+00:00"


def test_an_answer_never_mixes_two_evaluations(client, state):
    evaluations = [an_evaluation(id=f"e{n}", cluster=f"c{n}") for n in range(2)]
    state.publish(evaluation=evaluations[0])
    stop = threading.Event()

    def swap():
        n = 0
        while not stop.is_set():
            n += 1
            state.publish(evaluation=evaluations[n % 2])

    writer = threading.Thread(target=swap)
    writer.start()
    try:
        for _ in range(60):
            answer = client.get("/api/v1/fragmentation")
            body, tag = answer.json(), answer.headers["x-evaluation-id"]
            assert (tag, body["evaluation_id"], body["cluster"]) == (tag, tag, tag.replace("e", "c"))
    finally:
        stop.set()
        writer.join()
