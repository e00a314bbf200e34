"""Registry, errors and clock: the small things that every floor leans on."""

from datetime import UTC, datetime

import pytest

from gpuwatch.clock import FixedClock, SystemClock
from gpuwatch.errors import GpuwatchError, RegistryError, SourceError
from gpuwatch.registry import Registry


def test_registry_is_sorted_by_id_and_refuses_doubles() -> None:
    things: Registry[int] = Registry("thing")
    things.register("b")(2)
    things.register("a")(1)
    assert things.ids() == ["a", "b"]
    assert list(things.items()) == [("a", 1), ("b", 2)]
    with pytest.raises(RegistryError, match="'a'"):
        things.register("a")(3)
    assert things.get("a") == 1


def test_an_unknown_id_lists_the_known_ones() -> None:
    things: Registry[int] = Registry("thing")
    things.register("a")(1)
    with pytest.raises(RegistryError) as err:
        things.get("z")
    assert "'z'" in err.value.what
    assert "choose one of: a" in err.value.todo


def test_an_error_speaks_in_at_most_three_lines() -> None:
    assert GpuwatchError("a").lines() == ["error: a"]
    full = SourceError("a", tried="b", todo="c", code="timeout")
    assert full.lines() == ["error: a", "tried: b", "to do: c"]
    assert full.code == "timeout"
    assert SourceError("a").code == "source_error"


def test_a_fixed_clock_moves_only_when_told() -> None:
    clock = FixedClock(datetime(2026, 1, 1, tzinfo=UTC))
    clock.advance(60)
    assert clock.now() == datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
    assert clock.monotonic() == 60
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-1)
    with pytest.raises(ValueError, match="aware"):
        FixedClock(datetime(2026, 1, 1))  # noqa: DTZ001  # the fault under test
    assert SystemClock().now().tzinfo is UTC
