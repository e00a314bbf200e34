"""Two witnesses of the same events: told twice is one event, two events are two."""

from __future__ import annotations

from gpuwatch_exporters.nvml.xid.merge import WINDOW_SECONDS, Merge
from hypothesis import given
from hypothesis import strategies as st


def counted(*reports: tuple[str, float]) -> int:
    merge = Merge()
    for witness, seconds in reports:
        merge.report(witness, seconds)
    return merge.count


def test_told_by_both_is_one_event_whoever_comes_first() -> None:
    assert counted(("log", 10.0), ("event", 11.9)) == 1
    assert counted(("event", 10.0), ("log", 8.1)) == 1


def test_two_events_of_one_witness_are_two() -> None:
    assert counted(("log", 10.0), ("log", 10.0)) == 2
    assert counted(*[("event", 10 + i / 10) for i in range(10)]) == 10


def test_ten_events_in_a_second_told_by_both_are_ten() -> None:
    both = [(witness, 10 + i / 10) for i in range(10) for witness in ("log", "event")]
    assert counted(*both) == 10
    one_after_another = [("log", 10 + i / 10) for i in range(10)] + [("event", 10 + i / 10) for i in range(10)]
    assert counted(*one_after_another) == 10


def test_further_apart_than_the_window_are_two() -> None:
    assert counted(("log", 10.0), ("event", 12.1)) == 2


def test_the_last_time_is_the_latest() -> None:
    merge = Merge()
    merge.report("log", 10.0)
    merge.report("event", 9.0)
    assert merge.last_seconds == 10.0


def most_pairs(logs: list[float], events: list[float]) -> int:
    """The slow and obvious way: the largest number of pairs, by trying for each report every partner (augmenting
    paths)."""
    partner: dict[int, int] = {}

    def place(log: int, seen: set[int]) -> bool:
        for event, at in enumerate(events):
            if abs(at - logs[log]) <= WINDOW_SECONDS and event not in seen:
                seen.add(event)
                if event not in partner or place(partner[event], seen):
                    partner[event] = log
                    return True
        return False

    return sum(place(log, set()) for log in range(len(logs)))


tenths = st.integers(0, 120).map(lambda tenth: tenth / 10)
reports = st.lists(tenths, max_size=12).map(sorted)


@given(reports, reports, st.randoms(use_true_random=False))
def test_as_many_as_the_slow_way_counts_in_whatever_order_they_arrive(
    logs: list[float], events: list[float], order: object
) -> None:
    queues = {"log": list(logs), "event": list(events)}
    arriving = ["log"] * len(logs) + ["event"] * len(events)
    order.shuffle(arriving)  # type: ignore[attr-defined]
    merge = Merge()
    for witness in arriving:  # each witness reports in order of time
        merge.report(witness, queues[witness].pop(0))
    assert merge.count == len(logs) + len(events) - most_pairs(logs, events)


def test_a_storm_takes_no_more_memory_than_a_few() -> None:
    merge = Merge()
    for i in range(100_000):
        merge.report("log", i / 1000)
    assert merge.count == 100_000
    assert sum(len(told) for told in merge._unpaired.values()) <= 1024
