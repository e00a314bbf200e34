"""The options of serving: addresses and times, and where the defaults lie."""

from __future__ import annotations

import argparse

import pytest
from gpuwatch_exporters.serving.options import Listen, add_serving_arguments, listen_address, seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":9437", Listen("", 9437)),
        ("127.0.0.1:0", Listen("127.0.0.1", 0)),
        ("gpu-node:80", Listen("gpu-node", 80)),
        ("[::1]:9437", Listen("::1", 9437)),
        ("off", None),
    ],
)
def test_an_address_is_host_and_port(text: str, expected: Listen | None) -> None:
    assert listen_address(text) == expected


@pytest.mark.parametrize("text", ["", "9437", "host:", "host:port", ":65536", "::1:9437", ":-1", "OFF"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        listen_address(text)


def test_an_address_is_told_as_a_url_spells_it() -> None:
    assert [Listen("", 1).told(), Listen("::1", 2).told(), Listen("a", 3).told()] == ["0.0.0.0:1", "[::1]:2", "a:3"]


@pytest.mark.parametrize("text", ["0", "0.09", "-1", "nan", "inf", "86401", "ten", ""])
def test_an_interval_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        seconds(text)


def test_defaults_and_an_interval_of_the_callers() -> None:
    parser = argparse.ArgumentParser()
    add_serving_arguments(parser, interval_seconds=30)
    options = parser.parse_args([])
    assert options.listen == Listen("", 9437)
    assert options.interval == 30
    assert (options.once, options.textfile, options.web_config_file, options.config) == (False, None, None, None)
    assert "default: 30)" in parser.format_help()
