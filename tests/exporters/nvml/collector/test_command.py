"""Options of `gpuwatch-exporter nvml`."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from gpuwatch_exporters.nvml.command import add_arguments, settings_of
from gpuwatch_exporters.nvml.group import GROUPS
from gpuwatch_exporters.nvml.settings import DAY_SECONDS, Settings

from gpuwatch.errors import SettingsError

DETAILS = frozenset(name for name, group in GROUPS.items() if group.detail)


def parsed(*arguments: str) -> Settings:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return settings_of(parser.parse_args(arguments))


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NODE_NAME", "STATE_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)


def test_defaults() -> None:
    settings = parsed("--node-name", "node-a")
    assert settings == Settings("node-a", disabled=DETAILS)
    assert "nvlink_links" in DETAILS
    assert settings.forget_seconds == 30 * DAY_SECONDS


def test_what_is_given() -> None:
    settings = parsed(
        "--node-name", "n", "--interval", "5", "--device-timeout", "2", "--disable", "utilization", "--disable",
        "kernel_log", "--path.sysfs", "/host/sys", "--path.procfs", "/host/proc", "--state-file", "/var/lib/gpus",
        "--forget-after", "0", "--kernel-log", "/host/kmsg",
    )  # fmt: skip
    assert settings == Settings(
        "n", 5, 2, DETAILS | {"utilization", "kernel_log"}, (), Path("/host/sys"), Path("/host/proc"),
        Path("/host/kmsg"), Path("/var/lib/gpus"), None,
    )  # fmt: skip


def test_details_are_read_where_they_are_asked_for() -> None:
    assert parsed("--enable", "nvlink_links").disabled == DETAILS - {"nvlink_links"}
    assert parsed("--enable", "all").disabled == frozenset()
    assert parsed("--enable", "all", "--disable", "gpm").disabled == {"gpm"}
    with pytest.raises(SettingsError, match="--enable gpm"):
        parsed("--enable", "gpm")


def test_what_should_be_here() -> None:
    assert not parsed("--expected-gpus", "visible").whole_node
    settings = parsed("--expected-gpus", "8")
    assert (settings.whole_node, settings.expected_gpus) == (True, 8)


def test_the_node_is_named_by_kubernetes_and_the_state_folder_by_systemd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_NAME", "node-b")
    monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/gpuwatch:/var/lib/other")
    settings = parsed()
    assert (settings.node, settings.state_file) == ("node-b", Path("/var/lib/gpuwatch/nvml.json"))


def test_a_short_interval_shortens_the_wait_for_devices() -> None:
    assert parsed("--interval", "0.5").device_timeout == 0.4
    assert parsed("--interval", "60").device_timeout == 0.8


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--disable", "utilisation"), "--disable utilisation"),
        (("--compat", "nagios"), "--compat nagios"),
        (("--device-timeout", "0"), "--device-timeout 0"),
        (("--device-timeout", "11"), "--device-timeout 11"),
        (("--device-timeout", "nan"), "--device-timeout nan"),
        (("--forget-after", "-1"), "--forget-after -1"),
        (("--forget-after", "nan"), "--forget-after nan"),
        (("--node-name", ""), "no name"),
        (("--exit-when-no-gpu", "256"), "--exit-when-no-gpu 256"),
        (("--expected-gpus", "all"), "--expected-gpus all"),
        (("--expected-gpus", "-1"), "--expected-gpus -1"),
        (("--expected-gpus", "\u00b2"), "--expected-gpus"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(arguments: tuple[str, ...], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        parsed(*arguments)


def test_an_unknown_feature_is_told_with_the_known_ones() -> None:
    with pytest.raises(SettingsError) as caught:
        parsed("--disable", "colors")
    assert "utilization" in caught.value.todo
    assert "xid_events" in caught.value.todo
