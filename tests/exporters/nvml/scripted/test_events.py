"""XIDs from the library's events, on their own thread, and both witnesses together."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pynvml as nv
import pytest
from gpuwatch_exporters.device.families import xid as of
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.xid.book import XidBook
from gpuwatch_exporters.nvml.xid.events import EventWatcher
from gpuwatch_exporters.nvml.xid.xids import EVENTS, KERNEL_LOG, Xids

from tests.exporters.nvml.scripted.library import Scripted
from tests.servers import wait_for

FIRST, SECOND = "0000:18:00.0", "0000:28:00.0"
XID = nv.nvmlEventTypeXidCriticalError
NOW = 1_800_000_000.0


@pytest.fixture
def book() -> XidBook:
    return XidBook()


@pytest.fixture
def watcher(library: Scripted, book: XidBook) -> Iterator[EventWatcher]:
    watcher = EventWatcher(book, now=lambda: NOW)
    yield watcher
    assert watcher.stop()
    assert library.library.sc_sets_open() == 0


def xids(values: list[Value]) -> dict[str, float]:
    return {each.labels[0]: each.number for each in values if each.family is of.XID_ERRORS}


def watch(watcher: EventWatcher, *places: str) -> None:
    watcher.watch(places)
    wait_for("the registration", lambda: watcher.reason == "", every=0.01)


def test_the_same_xid_twice_is_two(library: Scripted, book: XidBook, watcher: EventWatcher) -> None:
    watch(watcher, FIRST)
    library.event(XID, 31)
    library.event(XID, 31)
    wait_for("both events", lambda: xids(book.values(FIRST)) == {"31": 2}, every=0.01)
    assert Value(of.XID_LAST, ("31",), NOW) in book.values(FIRST)
    assert xids(book.values(SECOND)) == {}


def test_a_device_that_comes_later_is_watched_too(library: Scripted, book: XidBook, watcher: EventWatcher) -> None:
    watch(watcher, FIRST)
    watcher.watch([FIRST, SECOND])
    library.event(XID, 63, gpu=1)
    wait_for("the event", lambda: xids(book.values(SECOND)) == {"63": 1}, every=0.01)
    assert library.calls("nvmlDeviceRegisterEvents") == 2


def test_other_faults_are_counted_by_name(library: Scripted, book: XidBook, watcher: EventWatcher) -> None:
    watch(watcher, FIRST)
    library.event(nv.nvmlEventTypeDoubleBitEccError)
    library.event(nv.nvmlEventTypeGpuRecoveryAction)

    def seen() -> dict[str, float]:
        return {each.labels[0]: each.number for each in book.values(FIRST) if each.family is of.DRIVER_EVENTS}

    wait_for("both", lambda: seen() == {"double_bit_ecc": 1, "recovery_action": 1}, every=0.01)
    assert xids(book.values(FIRST)) == {}


def test_a_device_without_events_says_why(library: Scripted, book: XidBook, watcher: EventWatcher) -> None:
    library.answer("nvmlDeviceRegisterEvents", nv.NVML_ERROR_NOT_SUPPORTED)
    watcher.watch([FIRST])
    wait_for("the reason", lambda: watcher.reason == "not_supported", every=0.01)


def test_a_lost_device_does_not_silence_the_others(library: Scripted, book: XidBook, watcher: EventWatcher) -> None:
    watch(watcher, FIRST, SECOND)
    library.answer("nvmlEventSetWait_v2", nv.NVML_ERROR_GPU_IS_LOST)
    wait_for("a failed wait", lambda: library.calls("nvmlEventSetWait_v2") > 1, every=0.01)
    library.allow()
    library.event(XID, 45, gpu=1)
    wait_for("the event", lambda: xids(book.values(SECOND)) == {"45": 1}, every=0.01)


def test_a_driver_that_goes_ends_the_waiting(library: Scripted, book: XidBook, watcher: EventWatcher) -> None:
    watch(watcher, FIRST)
    library.answer("nvmlEventSetWait_v2", nv.NVML_ERROR_UNINITIALIZED)
    wait_for("the reason", lambda: watcher.reason == "uninitialized", every=0.01)
    library.allow()
    assert watcher.stop()
    watch(watcher, FIRST)  # after the library was opened anew
    library.event(XID, 31)
    wait_for("the event", lambda: xids(book.values(FIRST)) == {"31": 1}, every=0.01)


def test_begun_before_the_library_is_open_it_begins_again(
    library: Scripted, book: XidBook, watcher: EventWatcher
) -> None:
    library.answer("nvmlEventSetCreate", nv.NVML_ERROR_UNINITIALIZED)
    watcher.watch([FIRST])
    wait_for("the reason", lambda: watcher.reason == "uninitialized", every=0.01)
    library.allow()

    def works() -> bool:
        watcher.watch([FIRST])
        return watcher.reason == ""

    wait_for("the registration", works, every=0.01)
    library.event(XID, 31)
    wait_for("the event", lambda: xids(book.values(FIRST)) == {"31": 1}, every=0.01)


def test_it_stops_within_a_second(library: Scripted, book: XidBook, watcher: EventWatcher) -> None:
    watch(watcher, FIRST)
    began = time.monotonic()
    assert watcher.stop()
    assert time.monotonic() - began < 1
    assert not [each for each in threading.enumerate() if each.name == "nvml-events"]
    assert watcher.reason == "stopped"


def test_told_by_event_and_log_is_one(library: Scripted, tmp_path: Path) -> None:
    log = tmp_path / "kmsg"
    log.write_text("")
    both = Xids(kernel_log=log)
    both.start()
    both.watch([FIRST])
    wait_for("both", lambda: set(both.features().values()) == {""}, every=0.01)
    assert [each for each in both.values(FIRST) if each.family is of.XID_EVENTS] == [Value(of.XID_EVENTS, (), 0)]
    line = "4,7,1000,-;NVRM: Xid (PCI:0000:18:00): {}, pid=1\n"
    library.event(XID, 79)
    with log.open("a") as more:
        more.write(line.format(79) + line.format(119))
    wait_for("both codes", lambda: xids(both.values(FIRST)) == {"79": 1, "119": 1}, every=0.01)
    wait_for("the log", lambda: any(e.family is of.LOG_LINES and e.number == 2 for e in both.node_values([])))
    library.event(XID, 119)  # late, and known already
    library.event(XID, 31)
    wait_for("the last", lambda: "31" in xids(both.values(FIRST)), every=0.01)
    assert xids(both.values(FIRST)) == {"79": 1, "119": 1, "31": 1}
    both.close()
    assert library.library.sc_sets_open() == 0


def test_without_any_witness_no_xid_is_unknown(library: Scripted, tmp_path: Path) -> None:
    neither = Xids(kernel_log=tmp_path / "none")
    neither.start()
    assert neither.features() == {EVENTS: "not_started", KERNEL_LOG: "not_found"}
    assert neither.values(FIRST) == []
    off = Xids(disabled={EVENTS, KERNEL_LOG})
    off.start()
    off.watch([FIRST])
    assert set(off.features().values()) == {"disabled"}
    off.close()
    neither.close()


def test_the_log_alone_goes_on_while_the_library_is_shut(library: Scripted, tmp_path: Path) -> None:
    log = tmp_path / "kmsg"
    log.write_text("")
    both = Xids(kernel_log=log)
    both.start()
    both.watch([FIRST])
    wait_for("both", lambda: set(both.features().values()) == {""}, every=0.01)
    both.pause()
    assert both.features() == {EVENTS: "stopped", KERNEL_LOG: ""}
    log.write_text("4,7,1000,-;NVRM: Xid (PCI:0000:18:00): 79, gone\n")
    wait_for("the line", lambda: xids(both.values(FIRST)) == {"79": 1}, every=0.01)
    both.close()
