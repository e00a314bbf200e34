"""Placements, probes, metrics, the guard at the door, and the description of it all."""

from __future__ import annotations

import hashlib

import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from gpuwatch.api.app import create_app
from gpuwatch.api.guard import MAX_BODY_BYTES
from gpuwatch.api.tokens import Tokens, is_loopback, read_tokens
from gpuwatch.errors import InputError, SettingsError
from tests.api.conftest import place
from tests.api.test_reads import problem


def test_a_placement_is_asked_of_the_same_snapshot(client, asked):
    body = {"gpus": 1, "milligpu": 500, "gpu_model": "NVIDIA-H100-80GB-HBM3", "cpu": "500m", "memory": "8GiB"}
    answer = client.post("/api/v1/placements", json=body)
    assert answer.status_code == 200
    assert "etag" not in answer.headers
    document = answer.json()
    assert (document["schema"], document["evaluation_id"]) == ("gpuwatch.placement/1", "abc123")
    assert (document["feasible"], document["blockers"]) == (False, {"cordoned": 1})
    (request,) = asked
    assert request.shape.gpu_models == ("H100-80",)
    assert (request.shape.milligpu_per_gpu, request.shape.cpu_millicores, request.shape.memory_bytes) == (
        500,
        500,
        8 * 2**30,
    )
    assert (request.members, request.policy, request.top) == (1, "fgd", 5)


@pytest.mark.parametrize("path", ["/api/v1/recommendations?rule=idle_held", "/api/v1/waterfall?pool=a"])
def test_a_filter_that_nobody_reads_is_refused(client, path):
    assert "known here: " in problem(client.get(path), 400, "unknown_parameter")["detail"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "gpus"),
        ({"gpus": "1"}, "integer"),
        ({"gpus": -1}, "greater than or equal to 0"),
        ({"gpus": 1, "gpu": 2}, "gpu"),
        ({"gpus": 2, "milligpu": 500}, "whole devices"),
        ({"gpus": 1, "milligpu": 0}, "milligpu"),
        ({"gpus": 1, "milligpu": 100, "mig_profile": "1g.10gb"}, "never shared"),
        ({"gpus": 1, "memory": "lots"}, "not an amount of memory"),
        ({"gpus": 1, "cpu": "many"}, "not an amount of CPU"),
        ({"gpus": 1, "top": 1000}, "top"),
        ({"gpus": 1, "gpu_memory": "lots"}, "gpu_memory: not an amount of memory"),
        ({"model_size": "70"}, "model_size: not a number of parameters"),
        ({"model_size": "70B", "precision": "fp3"}, "precision"),
        ({"gpus": 1, "purpose": "training"}, "does nothing without a model"),
        ([1], "dict"),
    ],
)
def test_an_odd_placement_is_refused_with_its_field(client, asked, body, says):
    told = problem(client.post("/api/v1/placements", json=body), 422, "bad_request")
    assert says in told["detail"]
    assert asked == []


def test_a_body_that_is_no_json_is_refused(client):
    problem(
        client.post("/api/v1/placements", content=b"{", headers={"content-type": "application/json"}),
        422,
        "bad_request",
    )


@pytest.mark.parametrize("body", [b'{"gpus":1,"gpu_model":"\xff"}', b"[" * 100_000])
def test_a_body_that_cannot_even_be_parsed_is_refused(client, body):
    answer = client.post("/api/v1/placements", content=body, headers={"content-type": "application/json"})
    problem(answer, answer.status_code, "bad_request")
    assert answer.status_code in (400, 422)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/api/v1/fragmentation"])
def test_head_answers_what_get_does(client, path):
    head, whole = client.head(path), client.get(path)
    assert head.status_code == whole.status_code == 200
    assert head.headers["content-type"] == whole.headers["content-type"]
    assert head.headers.get("etag") == whole.headers.get("etag")


def test_what_the_engine_refuses_is_a_problem(state):
    def refuse(*_):
        raise InputError("no policy is called 'x'", todo="choose fgd")

    client = TestClient(create_app(state, refuse), raise_server_exceptions=False)
    body = problem(client.post("/api/v1/placements", json={"gpus": 1}), 422, "bad_input")
    assert body["todo"] == "choose fgd"


def test_a_body_beyond_the_limit_is_refused_announced_or_not(client):
    large = b" " * (MAX_BODY_BYTES + 1)
    problem(client.post("/api/v1/placements", content=large), 413, "body_too_large")
    problem(client.post("/api/v1/placements", content=iter([large[: 2**20]] * 9)), 413, "body_too_large")


def test_readyz_tells_the_truth_and_why(client, state, clock):
    good = {"ready": True, "reasons": [], "snapshot_age_seconds": 0.0, "findings": []}
    assert client.get("/readyz").json() == good
    clock.advance(400)
    state.publish(source_ok=False)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert len(answer.json()["reasons"]) == 2
    assert "400 s old" in answer.json()["reasons"][0]
    assert client.get("/healthz").json()["status"] == "ok"


def test_metrics_are_of_the_same_evaluation(client):
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    found = {
        sample.labels["state"]: sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
        if sample.name == "gpuwatch_gpus" and sample.labels["pool"] == "a"
    }
    assert (found["allocated"], found["free"]) == (9.0, 5.0)
    document = client.get("/api/v1/waterfall").json()["items"][0]
    assert (document["allocated"], document["free"]) == (9.0, 5.0)


def test_metrics_speak_openmetrics_when_asked(client):
    answer = client.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


def test_metrics_are_served_while_stale_and_before_the_first_evaluation(client, state, clock):
    clock.advance(10_000)
    assert 'gpuwatch_snapshot_age_seconds{cluster="test"} 10000.0' in client.get("/metrics").text
    state.publish(evaluation=None, snapshot=None)
    text = client.get("/metrics").text
    assert "gpuwatch_ready 0.0" in text
    assert "gpuwatch_gpus" not in text


def test_the_description_names_every_endpoint(client):
    schema = client.get("/openapi.json").json()
    assert schema["openapi"].startswith("3.1")
    reads = ("evaluation", "snapshot", "waterfall", "fragmentation", "forecasts", "recommendations")
    assert {f"/api/v1/{name}" for name in reads} | {"/api/v1/placements", "/metrics", "/readyz"} <= set(schema["paths"])
    body = schema["components"]["schemas"]["PlacementBody"]
    assert {"gpus", "gpu_memory", "model_size", "precision", "purpose"} <= set(body["properties"])
    assert "required" not in body  # gpus or model_size: which of them is told where neither is given


def test_with_tokens_only_the_probes_are_open(state):
    tokens = Tokens({"grafana": hashlib.sha256(b"secret").hexdigest()})
    client = TestClient(create_app(state, place, tokens=tokens))
    assert client.get("/healthz").status_code == 200
    assert client.get("/readyz").status_code == 200
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic secret"}):
        answer = client.get("/metrics", headers=headers)
        problem(answer, 401, "unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"
    assert client.get("/metrics", headers={"Authorization": "Bearer secret"}).status_code == 200


def test_a_token_file_holds_sums_only(tmp_path):
    path = tmp_path / "tokens"
    digest = hashlib.sha256(b"secret").hexdigest()
    path.write_text(f"# who\n\ngrafana {digest}\n")
    tokens = read_tokens(path)
    assert tokens.holder("secret") == "grafana"
    assert tokens.holder(digest) is None


@pytest.mark.parametrize("text", ["", "# none\n", "grafana secret\n", "a {s}\na {s}\n", "justaname\n"])
def test_a_token_file_that_is_none_is_refused(tmp_path, text):
    path = tmp_path / "tokens"
    path.write_text(text.replace("{s}", "0" * 64))
    with pytest.raises(SettingsError):
        read_tokens(path)


def test_a_missing_token_file_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="cannot read"):
        read_tokens(tmp_path / "none")


@pytest.mark.parametrize(
    ("host", "is_it"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("db", False)],
)
def test_loopback_is_told_from_the_rest(host, is_it):
    assert is_loopback(host) is is_it
