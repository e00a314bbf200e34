"""XIDs are counted one by one, each once."""

from __future__ import annotations

from pathlib import Path

from tests.exporters.dcgm_backend.conftest import Host, feature, value

GPU, XID = 1, 230


def happens(host: Host, gpu: int, code: int) -> None:
    host.engine.events.append(((GPU, gpu), XID, int(host.clock.seconds() * 1e6), code))


def test_two_of_one_code_are_two_and_a_time(host: Host) -> None:
    assert value(host.cycle(), "xid_events_total") == 0
    host.clock.forward(5)
    happens(host, 0, 31)
    host.clock.forward(1)
    happens(host, 0, 31)
    at = host.clock.seconds()
    host.clock.forward(5)
    frame = host.cycle()
    assert value(frame, "xid_errors_total", "31") == 2
    assert value(frame, "xid_last_timestamp_seconds", "31") == at
    assert value(frame, "xid_events_total") == 2
    assert value(frame, "xid_events_total", gpu=1) == 0


def test_no_event_is_counted_twice_nor_lost_over_a_new_connection(host: Host) -> None:
    host.cycle()
    happens(host, 1, 79)
    for _ in range(3):
        host.clock.forward(10)
        frame = host.cycle()
    assert value(frame, "xid_errors_total", "79", gpu=1) == 1
    host.engine.die()
    host.cycle()
    host.engine.alive = True
    host.clock.forward(30)
    happens(host, 1, 79)
    host.clock.forward(30)
    assert value(host.cycle(), "xid_errors_total", "79", gpu=1) == 2


def test_the_last_word_of_a_gpu_that_is_lost_then_gone_is_told(host: Host) -> None:
    host.cycle()
    happens(host, 0, 79)
    host.engine.gpus[0].status = 4
    frame = host.cycle()
    assert not frame.devices[0].up
    assert value(frame, "xid_errors_total", "79") == 1
    del host.engine.gpus[0]
    frame = host.cycle()
    assert frame.devices[0].down_reason == "not_listed"
    assert value(frame, "xid_errors_total", "79") == 1
    host.engine.die()
    assert value(host.cycle(), "xid_errors_total", "79") == 1


def test_a_gpu_that_was_never_watched_has_no_count(host: Host, tmp_path: Path) -> None:
    host.open(state_file=tmp_path / "dcgm.json")
    host.cycle()
    del host.engine.gpus[0]
    host.open(state_file=tmp_path / "dcgm.json")
    assert value(host.cycle(), "xid_events_total") is None


def test_an_unknown_code_counts_like_others(host: Host) -> None:
    host.cycle()
    happens(host, 0, 4711)
    host.clock.forward(10)
    assert value(host.cycle(), "xid_errors_total", "4711") == 1


def test_unwatched_xids_are_unknown_not_none(host: Host) -> None:
    host.open(disabled=frozenset(("xid",)))
    frame = host.cycle()
    assert value(frame, "xid_events_total") is None
    assert feature(frame, "xid") == {("off", "disabled"): 2}
