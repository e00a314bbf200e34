"""The configuration file: strict, and every fault is told with its key, line and nearest known key."""

from __future__ import annotations

import pytest

from gpuwatch.config import Config, default_store_url, load_config, parse_config
from gpuwatch.errors import SettingsError

WHOLE = """\
cluster = "west"
interval_seconds = 30

[listen]
host = "127.0.0.1"
port = 9500

[store]
url = "sqlite:////tmp/x.db"
retention_days = 30

[analysis]
idle_peak_ratio = 0.02
currency = "EUR"

[analysis.gpu_hour_price]
"H100-80" = 3.5
default = 1

[[source]]
kind = "prometheus"
url = "http://127.0.0.1:9090"

[[source]]
kind = "snapshot"
path = "last.json"
"""


def test_a_whole_file_is_read():
    config = parse_config(WHOLE)
    assert (config.cluster, config.interval_seconds, config.listen_port) == ("west", 30.0, 9500)
    assert (config.store_url, config.retention_days) == ("sqlite:////tmp/x.db", 30)
    assert config.analysis.idle_peak_ratio == 0.02
    assert config.analysis.gpu_hour_price == {"H100-80": 3.5, "default": 1.0}
    assert [s.kind for s in config.sources] == ["prometheus", "snapshot"]
    assert config.sources[1].settings == {"path": "last.json"}


def test_an_empty_file_gives_the_defaults(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    config = parse_config("")
    assert config == Config(store_url=default_store_url())
    assert config.store_url == f"sqlite:///{tmp_path}/gpuwatch/gpuwatch.db"
    assert config.listen_host == "127.0.0.1"


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("retention_days", "retention_day", 10, "did you mean 'retention_days'?"),
        ("cluster =", "clutser =", 1, "did you mean 'cluster'?"),
        ("[listen]", "[lissten]", 4, "did you mean 'listen'?"),
        ("idle_peak_ratio", "idle_peek_ratio", 13, "did you mean 'idle_peak_ratio'?"),
        ("port = 9500", 'port = "9500"', 6, "valid integer"),
        ("port = 9500", "port = 70000", 6, "not a port"),
        ("= 0.02", "= 2.0", 13, "between 0 and 1"),
        ("= 30\n\n[listen", "= 0\n\n[listen", 2, "between 1 and 86400"),
        ('"H100-80" =', '"H100-8O" =', 17, "did you mean 'H100-80'?"),
        ("default = 1", "default = -1", 18, "0 or more"),
        ('kind = "snapshot"', 'kind = "snapshoot"', 25, "did you mean 'snapshot'?"),
        ('kind = "snapshot"\n', "", 24, "needs kind"),
    ],
)
def test_a_fault_is_told_with_its_line_and_the_nearest_key(old, new, line, says):
    assert old in WHOLE
    with pytest.raises(SettingsError) as caught:
        parse_config(WHOLE.replace(old, new), origin="g.toml")
    told = "\n".join(caught.value.lines())
    assert f"g.toml, line {line}:" in told
    assert says in told


def test_yaml_is_read_the_same_way(tmp_path):
    path = tmp_path / "g.yaml"
    path.write_text("cluster: east\nlisten:\n  port: 9501\nsource:\n  - kind: generated\n    seed: 3\n")
    config = load_config(path)
    assert (config.cluster, config.listen_port, config.sources[0].settings) == ("east", 9501, {"seed": 3})
    path.write_text("cluster: east\nlisten:\n  prot: 9501\n")
    with pytest.raises(SettingsError, match=r"line 3: listen.prot: unknown key"):
        load_config(path)


@pytest.mark.parametrize(("text", "is_yaml"), [("cluster = ", False), ("a: [", True), ("- 1", True)])
def test_what_is_no_configuration_says_so(text, is_yaml):
    with pytest.raises(SettingsError) as caught:
        parse_config(text, is_yaml=is_yaml)
    assert len("\n".join(caught.value.lines()).splitlines()) <= 3


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(SettingsError, match="cannot read"):
        load_config(tmp_path / "none.toml")


def test_forecast_models_are_read_and_an_unknown_one_is_told_with_the_known():
    assert parse_config('[analysis]\nforecast_models = ["median", "lstm"]').analysis.forecast_models == (
        "median",
        "lstm",
    )
    with pytest.raises(
        SettingsError, match=r"line 3: analysis\.forecast_models: no forecaster is called 'ltsm'"
    ) as caught:
        parse_config('[analysis]\ncurrency = "EUR"\nforecast_models = ["median", "ltsm"]')
    assert caught.value.todo.startswith("choose from: arima, fourier_ar, last_value, lstm, median")
