"""The listening socket: who can connect to it."""

from __future__ import annotations

import pytest
from gpuwatch_exporters.serving.listening import is_loopback, listen, told_address
from gpuwatch_exporters.serving.options import Listen


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("127.1.2.3", True), ("localhost", True), ("0.0.0.0", False), ("", False)],
)
def test_only_this_machine_connects_to_a_loopback_address(host: str, loopback: bool) -> None:
    with listen(Listen(host, 0)) as sock:
        assert is_loopback(sock) == loopback
        assert told_address(sock).rpartition(":")[2] != "0"
