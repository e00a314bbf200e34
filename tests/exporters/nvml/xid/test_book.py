"""The book of faults: what is counted where, and that it stays small."""

from __future__ import annotations

from gpuwatch_exporters.device.families import xid as of
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.xid.book import XidBook

GPU = "0000:18:00.0"


def test_a_gpu_without_xids_has_none_where_somebody_looks() -> None:
    book = XidBook()
    assert book.values(GPU) == [Value(of.XID_EVENTS, (), 0)]
    assert book.values(GPU, watched=False) == []


def test_codes_have_their_own_count_and_time() -> None:
    book = XidBook()
    for code, seconds in ((31, 100.0), (31, 200.0), (79, 150.0)):
        book.xid("event", GPU, code, seconds)
    assert book.values(GPU) == [
        Value(of.XID_ERRORS, ("31",), 2),
        Value(of.XID_ERRORS, ("79",), 1),
        Value(of.XID_LAST, ("31",), 200.0),
        Value(of.XID_LAST, ("79",), 150.0),
        Value(of.XID_EVENTS, (), 3),
    ]


def test_gpus_do_not_share_counts() -> None:
    book = XidBook()
    book.xid("event", GPU, 31, 100.0)
    book.xid("kernel_log", "0000:28:00.0", 31, 100.0)
    assert Value(of.XID_ERRORS, ("31",), 1) in book.values(GPU)
    assert Value(of.XID_ERRORS, ("31",), 1) in book.values("0000:28:00.0")


def test_places_that_are_made_up_do_not_fill_the_memory() -> None:
    book = XidBook()
    for number in range(10_000):
        book.xid("kernel_log", f"{number:04x}:00:00.0", 31, 1.0)
        book.count("switch", f"{number:04x}:00:00.0", str(number), "fatal")
        book.count("switch", "0000:00:00.0", str(number), "fatal")
    values = book.node_values(())
    assert len([each for each in values if each.family is of.UNIDENTIFIED_XIDS]) == 64
    assert len([each for each in values if each.family is of.SWITCH_ERRORS]) <= 64 + 256
    assert Value(of.XID_ERRORS, ("31",), 1) in book.values("0000:00:00.0")
