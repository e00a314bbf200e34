"""The limit of requests."""

from __future__ import annotations

from gpuwatch_exporters.serving.web_config.bucket import Bucket

from tests.servers import wait_for


def test_a_burst_is_let_through_then_one_an_interval() -> None:
    bucket = Bucket(0.05, 3)
    assert [bucket.take() for _ in range(4)] == [True, True, True, False]
    wait_for("the next", bucket.take, seconds=5, every=0.01)
    assert not bucket.take()
