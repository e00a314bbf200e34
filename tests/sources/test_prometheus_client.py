from __future__ import annotations

import math
import socket
from dataclasses import replace

import pytest

from gpuwatch.errors import SettingsError, SourceError
from gpuwatch.sources.prometheus.client import PrometheusClient
from gpuwatch.sources.settings import PrometheusSettings, safe_url
from tests.builders import NOW
from tests.sources.fake_prometheus import as_bytes, as_json, drip, fake_prometheus, hang_up, stall, vector

pytestmark = pytest.mark.server


@pytest.fixture
def fake():
    with fake_prometheus() as server:
        yield server


def client(fake, **changes) -> PrometheusClient:
    settings = PrometheusSettings(url=fake.url, timeout_seconds=5.0, backoff_seconds=0.01)
    return PrometheusClient(replace(settings, **changes), sleep=lambda _: None)


def error(text: str, kind: str = "bad_data", **more):
    return {"status": "error", "errorType": kind, "error": text, **more}


def success(data):
    return {"status": "success", "data": data}


NUMBER_AS_NUMBER = as_json(200, success({"resultType": "vector", "result": [{"metric": {}, "value": [0, 1]}]}))
FAULTS = {
    "login page": (as_bytes(200, b"<html>Sign in</html>"), "not_json"),
    "proxy error page": (as_bytes(502, b"<html>Bad Gateway</html>"), "http_status"),
    "server error": (as_json(500, error("boom", "internal")), "http_status"),
    "unauthorized": (as_bytes(401, b"who are you"), "http_status"),
    "redirect": (as_bytes(302, b"", headers={"Location": "/login"}), "http_status"),
    "bad query": (as_json(400, error("parse error: unexpected }")), "query_error"),
    "too many samples": (as_json(422, error("it would load too many samples", "execution")), "query_error"),
    "server gave up": (as_json(503, error("query timed out", "timeout")), "timeout"),
    "overloaded": (as_bytes(503, b"busy"), "http_status"),
    "connection cut": (hang_up, "bad_answer"),
    "half a document": (as_bytes(200, b'{"status":"success","data":{"resu'), "bad_answer"),
    "deep nonsense": (as_bytes(200, b"[" * 100_000), "bad_answer"),
    "empty body": (as_bytes(200, b""), "not_json"),
    "a list": (as_json(200, []), "bad_answer"),
    "no data": (as_json(200, {"status": "success"}), "bad_answer"),
    "unknown result": (as_json(200, success({"resultType": "string", "result": [0, "x"]})), "bad_answer"),
    "row without value": (as_json(200, success({"resultType": "vector", "result": [{"metric": {}}]})), "bad_answer"),
    "value no number": (vector([({}, "soon")]), "bad_answer"),
    "value no text": (NUMBER_AS_NUMBER, "bad_answer"),
    "partial": (vector([({}, 1.0)], warnings=["store 10.0.0.7 did not reply"]), "partial"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_has_its_cause(fake, fault):
    fake.otherwise, code = FAULTS[fault]
    with client(fake) as asking, pytest.raises(SourceError) as caught:
        asking.instant("pods", "up", NOW)
    assert caught.value.code == code
    assert fake.url in caught.value.what
    assert caught.value.tried == "query pods"
    assert caught.value.todo


@pytest.mark.parametrize("slow", [stall, drip])
def test_slow_is_a_timeout_even_when_it_drips(fake, slow):
    fake.otherwise = slow
    with client(fake, timeout_seconds=0.3) as asking, pytest.raises(SourceError) as caught:
        asking.instant("pods", "up", NOW)
    assert caught.value.code == "timeout"


def test_nobody_listens():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound and not listening: nobody else gets the port, and it refuses
        settings = PrometheusSettings(url=f"http://me:secret@127.0.0.1:{held.getsockname()[1]}")
        with PrometheusClient(settings) as asking, pytest.raises(SourceError) as caught:
            asking.instant("pods", "up", NOW)
    assert caught.value.code == "unreachable"
    assert "secret" not in "\n".join(caught.value.lines())


def test_too_large_is_cut_off(fake):
    fake.otherwise = vector([({"pod": f"p{i}"}, 1.0) for i in range(1000)])
    with client(fake, max_response_bytes=5000) as asking, pytest.raises(SourceError) as caught:
        asking.instant("pods", "up", NOW)
    assert caught.value.code == "too_large"


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_asked_again_after_a_pause(fake, status):
    fake.answers["up"] = [as_bytes(status, b"busy", headers={"Retry-After": "2"}), vector([({}, 1.0)])]
    pauses: list[float] = []
    with PrometheusClient(PrometheusSettings(url=fake.url), sleep=pauses.append) as asking:
        assert len(asking.instant("pods", "up", NOW)) == 1
    assert pauses == [2.0]


def test_other_faults_are_not_asked_again(fake):
    fake.otherwise = as_bytes(500, b"boom")
    with client(fake) as asking, pytest.raises(SourceError):
        asking.instant("pods", "up", NOW)
    assert len(fake.asked) == 1


def test_partial_answers_are_taken_when_told_so(fake):
    fake.otherwise = FAULTS["partial"][0]
    with client(fake, accept_partial=True) as asking:
        assert len(asking.instant("pods", "up", NOW)) == 1


def test_numbers_that_are_none_are_read_as_such(fake):
    fake.otherwise = vector([({"i": "a"}, "NaN"), ({"i": "b"}, "+Inf"), ({"i": "c"}, "-Inf"), ({"i": "d"}, "1e3")])
    with client(fake) as asking:
        values = [row.points[0][1] for row in asking.instant("pods", "up", NOW)]
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, -math.inf, 1000.0]


def test_the_form_carries_time_query_and_headers(fake, tmp_path):
    token = tmp_path / "token"
    token.write_text("t0ken\n")
    with client(fake, bearer_token_file=str(token), tenant="team-a", headers={"X-Extra": "1"}) as asking:
        asking.instant("pods", 'up{job="a"}', NOW)
    (form,) = fake.asked
    assert form["path"] == "/api/v1/query"
    assert form["query"] == 'up{job="a"}'
    assert float(form["time"]) == NOW.timestamp()
    assert form["header:Authorization"] == "Bearer t0ken"
    assert form["header:X-Scope-OrgID"] == "team-a"
    assert form["header:X-Extra"] == "1"


@pytest.mark.parametrize(
    "changes",
    [
        {"url": "ftp://x"},
        {"url": "prometheus:9090"},
        {"timeout_seconds": 0},
        {"max_concurrency": 0},
        {"matchers": {"a-b": "x"}},
    ],
)
def test_settings_that_cannot_be_honored_are_refused(changes):
    with pytest.raises(SettingsError):
        replace(PrometheusSettings(), **changes).checked()


@pytest.mark.parametrize("setting", ["ca_file", "bearer_token_file"])
def test_a_missing_file_is_named(fake, setting):
    with pytest.raises(SettingsError, match="/no/such/file"), client(fake, **{setting: "/no/such/file"}) as asking:
        asking.instant("pods", "up", NOW)


def test_addresses_are_shown_without_secrets():
    assert safe_url("https://u:p@h:9/x/?token=1#y") == "https://h:9/x"
    assert safe_url("http://[::1]:9090") == "http://[::1]:9090"
    assert safe_url("http://h:port") == "(an address that cannot be read)"
