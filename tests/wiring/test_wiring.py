"""From a configuration or an input to an evaluation or a daemon; every fault told before anything starts."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from gpuwatch.clock import FixedClock
from gpuwatch.config import InputSpec, parse_config
from gpuwatch.errors import GpuwatchError, SettingsError, SourceError
from gpuwatch.model.codec import dump_snapshot
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.wiring import build_daemon, demo_daemon, evaluate_once
from tests.builders import NOW, a_job, a_node, a_snapshot


@pytest.fixture
def snapshot_file(tmp_path):
    path = tmp_path / "s.json"
    path.write_text(dump_snapshot(a_snapshot(a_node(), jobs=[a_job("j", "n1", [0, 1, 2])])))
    return path


def configured(tmp_path, snapshot_file, more: str = "") -> str:
    return f"""
cluster = "west"
{more}
[store]
url = "sqlite:///{tmp_path / "x.db"}"
[[source]]
kind = "snapshot"
path = {json.dumps(str(snapshot_file))}
"""


def test_one_evaluation_of_a_file(snapshot_file):
    done = evaluate_once(InputSpec(kind="snapshot", path=str(snapshot_file)))
    assert done.evaluation.waterfall.allocated_milligpu == 3000
    assert done.snapshot.taken_at == NOW
    assert done.evaluation.sources[0].ok


def test_one_evaluation_of_the_generated_cluster_repeats():
    one, two = (evaluate_once(InputSpec(kind="generated", seed=3)) for _ in range(2))
    assert one.evaluation == two.evaluation
    assert one.evaluation.failures == ()
    assert one.history.series
    assert any(each.status == "ok" for each in one.evaluation.forecasts)
    assert one.settings.gpu_hour_price


def test_one_evaluation_of_a_configuration_uses_the_first_source_that_answers(tmp_path, snapshot_file):
    path = tmp_path / "c.toml"
    missing = f'[[source]]\nkind = "snapshot"\npath = "{tmp_path}/none.json"\n'
    path.write_text(configured(tmp_path, snapshot_file).replace("[[source]]", missing + "[[source]]", 1))
    done = evaluate_once(InputSpec(kind="config", path=str(path)))
    assert done.evaluation.cluster == "west"
    assert [(s.ok, s.cause) for s in done.evaluation.sources] == [(False, "unreachable"), (True, None)]


@pytest.mark.parametrize("kind", ["snapshot", "trace", "config"])
def test_an_input_that_is_not_there_is_an_error_with_advice(tmp_path, kind):
    with pytest.raises(GpuwatchError) as caught:
        evaluate_once(InputSpec(kind=kind, path=str(tmp_path / "none")))
    assert caught.value.what


def test_a_daemon_of_a_configuration_serves_one_truth(tmp_path, snapshot_file):
    served = build_daemon(parse_config(configured(tmp_path, snapshot_file)), clock=FixedClock(NOW))
    assert (served.host, served.port) == ("127.0.0.1", 9438)
    assert served.daemon.round()
    client = TestClient(served.app)
    assert client.get("/readyz").status_code == 200
    fall = client.get("/api/v1/waterfall").json()
    assert (fall["cluster"], fall["items"][0]["allocated"], fall["items"][0]["free"]) == ("west", 3.0, 5.0)
    cells = [s for f in text_string_to_metric_families(client.get("/metrics").text) for s in f.samples]
    for state, gpus in (("installed", 8.0), ("allocated", 3.0), ("free", 5.0)):
        # Counts add up over pools and models; no row holds the sum a second time.
        assert sum(c.value for c in cells if c.name == "gpuwatch_gpus" and c.labels["state"] == state) == gpus
    placed = client.post("/api/v1/placements", json={"gpus": 5}).json()
    assert placed["feasible"] is True
    assert placed["evaluation_id"] == fall["evaluation_id"]
    assert client.post("/api/v1/placements", json={"gpus": 6}).json()["feasible"] is False
    assert client.post("/api/v1/placements", json={"gpus": 1, "policy": "none"}).status_code in (422, 500)
    served.daemon.stop()


def test_the_demo_is_the_whole_product(tmp_path):
    served = demo_daemon(port=0, seed=7)
    assert served.daemon.round()
    client = TestClient(served.app)
    body = client.get("/api/v1/recommendations").json()
    assert len(body["items"]) >= 5
    assert all(item["commands"] and item["evidence"] and item["first_seen_at"] for item in body["items"])
    assert client.get("/api/v1/fragmentation").json()["fragmentation_index"] > 0
    assert any(item["status"] == "ok" for item in client.get("/api/v1/forecasts").json()["items"])
    assert "<article" in client.get("/").text
    assert served.daemon.state.view.evaluation.failures == ()
    served.daemon.stop()


def test_a_host_that_others_can_reach_needs_tokens(tmp_path, snapshot_file):
    text = configured(tmp_path, snapshot_file, '[listen]\nhost = "0.0.0.0"\n')
    with pytest.raises(SettingsError, match="without tokens"):
        build_daemon(parse_config(text))
    tokens = tmp_path / "tokens"
    tokens.write_text(f"me {'0' * 64}\n")
    text = text.replace("[store]", f'token_file = "{tokens}"\n[store]')
    assert TestClient(build_daemon(parse_config(text)).app).get("/metrics").status_code == 401


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("", "names no source"),
        ('[[source]]\nkind = "snapshot"\n', "path"),
        ('[[source]]\nkind = "snapshot"\npaht = "x"\n', "did you mean 'path'?"),
        ('[[source]]\nkind = "generated"\nseed = "x"\n', "line 5"),
        ('[[source]]\nkind = "trace"\nfolder = "x"\nload_ratio = 7.0\n', "between 0 and 2"),
        ('[[source]]\nkind = "trace"\nfolder = "x"\npolicy = "best_fitt"\n', "best_fit"),
        ('[[source]]\nkind = "generated"\nscale = 0\n', "between 1 and 1000"),
        ('[[source]]\nkind = "prometheus"\nurl = "ftp://x"\n', "http"),
        ('[[source]]\nkind = "prometheus"\nurll = "http://x"\n', "did you mean 'url'?"),
    ],
)
def test_a_source_that_cannot_be_built_is_told_before_the_start(source, says):
    with pytest.raises(SettingsError) as caught:
        build_daemon(parse_config('[store]\nurl = ""\n' + source))
    assert says in "\n".join(caught.value.lines())


@pytest.mark.parametrize("url", ["state.db", "nosuchdb://x/y"])
def test_a_store_that_cannot_be_one_is_told_before_the_start(url):
    with pytest.raises(SettingsError):
        build_daemon(parse_config(f'[store]\nurl = "{url}"\n[[source]]\nkind = "generated"\n'))


def test_a_prometheus_that_is_down_leaves_a_daemon_that_says_so():
    text = '[store]\nurl = ""\n[[source]]\nkind = "prometheus"\nurl = "http://127.0.0.1:9"\ntimeout_seconds = 2\n'
    served = build_daemon(parse_config(text), clock=FixedClock(NOW))
    assert not served.daemon.round()
    client = TestClient(served.app)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "unreachable" in " ".join(answer.json()["reasons"])
    assert client.get("/api/v1/waterfall").status_code == 503
    assert 'gpuwatch_source_up{source="prometheus:127.0.0.1"} 0.0' in client.get("/metrics").text
    assert client.get("/").status_code == 200


def test_the_idle_window_of_the_analysis_is_what_prometheus_is_asked_for():
    text = '[store]\nurl=""\n[analysis]\nidle_window_seconds=3600\n[[source]]\nkind="prometheus"\nurl="http://127.0.0.1:9"\n'
    served = build_daemon(parse_config(text))
    assert served.daemon._sources[0].settings.window_seconds == 3600


def test_every_source_down_is_the_first_cause(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text(f'[[source]]\nkind = "snapshot"\npath = "{tmp_path}/none.json"\n')
    with pytest.raises(SourceError, match="no snapshot file"):
        evaluate_once(InputSpec(kind="config", path=str(path)))


def test_the_example_configuration_is_one():
    text = (Path(__file__).parents[2] / "deploy" / "gpuwatch.example.toml").read_text(encoding="utf-8")
    config = parse_config(text)
    assert (config.cluster, config.analysis.gpu_hour_price["H100-80"]) == ("west", 3.0)
    assert build_daemon(replace(config, store_url="")).port == 9438
    uncommented = re.sub(r"^# (?=\[|[a-z_]+ = )", "", text, flags=re.MULTILINE)
    assert len(parse_config(uncommented).sources) == 2


def test_forecast_models_of_the_input_override_the_settings():
    spec = InputSpec(kind="generated")
    assert evaluate_once(spec).settings.forecast_models == AnalysisSettings().forecast_models
    done = evaluate_once(replace(spec, forecast_models=("last_value",)))
    assert done.settings.forecast_models == ("last_value",)
    assert {f.model for f in done.evaluation.forecasts if f.model} <= {"last_value", "seasonal_naive"}
