"""Protobuf's wire format, against protobuf's own runtime and against bytes that are none."""

from __future__ import annotations

from typing import Any

import pytest
from gpuwatch_exporters.holders.holding import LookError
from gpuwatch_exporters.holders.podresources.pods import holdings
from gpuwatch_exporters.holders.podresources.wire import WireError, fields
from hypothesis import given
from hypothesis import strategies as st

from tests.exporters.holders.kubelet import answer, container, pod

TEXTS = st.text(max_size=12)
IDS = st.lists(TEXTS.map(lambda text: "GPU-a" + text), min_size=1, max_size=5, unique=True)


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS, IDS), max_size=6))
def test_what_protobuf_writes_is_read(pods: list[tuple[str, str, str, list[str]]]) -> None:
    made = [pod(name, container(box, {"nvidia.com/gpu": ids}), namespace=space) for name, space, box, ids in pods]
    read = holdings(memoryview(answer(*made)))
    assert [(each.pod, each.namespace, each.container, [ref.text for ref in each.refs]) for each in read] == [
        (name, space, box, ids) for name, space, box, ids in pods
    ]


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        list(fields(memoryview(data)))
    except WireError:
        with pytest.raises(LookError, match="cannot be read"):
            holdings(memoryview(data))
    else:
        read(data)


def read(data: bytes) -> Any:
    """The holdings; None for what is refused. Anything else than LookError goes through."""
    try:
        return holdings(memoryview(data))
    except LookError:
        return None


def test_every_cut_of_a_message_is_refused_or_a_shorter_message() -> None:
    whole = answer(pod("a", container("c", {"nvidia.com/gpu": ["GPU-1"]})))
    assert [read(whole[:size]) for size in range(1, len(whole))] == [None] * (len(whole) - 1)
    assert len(read(whole)) == 1


def test_fields_of_a_newer_kubelet_are_skipped() -> None:
    known = answer(pod("a", container("c", {"nvidia.com/gpu": ["GPU-1"]})))
    newer = b"\x78\x96\x01" + b"\x7d\x01\x02\x03\x04" + b"\x79" + bytes(8) + b"\x82\x01\x02hi"
    assert read(known + newer) == read(newer + known) == read(known)
