"""The pages as served: they load nothing, and say when not to be believed."""

from __future__ import annotations

import re

from tests.api.conftest import asked, client, clock, state

__all__ = ["asked", "client", "clock", "state"]  # fixtures of the API's tests


def test_the_first_page_forbids_the_browser_to_load_anything(client):
    answer = client.get("/")
    assert answer.status_code == 200
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "script" not in answer.headers["content-security-policy"]
    assert "abc123" in answer.text
    assert '<meta http-equiv="refresh" content="30">' in answer.text


def test_a_page_that_is_stale_says_so_first(client, clock):
    clock.advance(1000)
    text = client.get("/").text
    assert "Do not rely on this now" in text
    assert "1000 s old" in text


def test_before_the_first_evaluation_the_page_says_so(client, state):
    state.publish(evaluation=None, snapshot=None)
    answer = client.get("/")
    assert answer.status_code == 200
    assert "no evaluation yet" in answer.text


def test_the_page_on_the_api_lists_every_endpoint_and_loads_nothing(client):
    answer = client.get("/docs")
    assert answer.status_code == 200
    assert "GET /api/v1/recommendations" in answer.text
    assert "POST /api/v1/placements" in answer.text
    assert not re.search(r"(src|href)=\"(https?:)?//", answer.text)
