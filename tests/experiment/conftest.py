"""What the tests of experiments share."""

from __future__ import annotations

import pytest

from tests.experiment.small_trace import NOT_COMPILED


@pytest.fixture(autouse=True)
def not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here and in the processes that a test starts."""
    for name, value in NOT_COMPILED.items():
        monkeypatch.setenv(name, value)
