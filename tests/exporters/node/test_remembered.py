from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from gpuwatch_exporters.device.frame import Identity
from gpuwatch_exporters.node.remembered import SAVE_SECONDS, Remembered
from hypothesis import given
from hypothesis import strategies as st

DAY = 86400.0


def gpu(number: int, slot: int | None = None) -> Identity:
    at = number if slot is None else slot
    return Identity(number, f"GPU-{number}", f"0000:{at:02x}:00.0", "NVIDIA H100", f"S{number}", number, "580.1")


def uuids(found: tuple[Identity, ...]) -> list[str]:
    return [each.uuid for each in found]


def test_a_lost_gpu_is_missed_also_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "gpus.json"
    assert Remembered(file).update([gpu(0), gpu(1)], now=1000) == ()
    again = Remembered(file)
    assert again.update([gpu(0)], now=2000) == (gpu(1),)
    assert again.at_slot("0000:01:00.0") == gpu(1)
    assert again.trouble is None


def test_a_replaced_gpu_is_forgotten(tmp_path: Path) -> None:
    memory = Remembered(tmp_path / "gpus.json")
    memory.update([gpu(0), gpu(1)], now=1000)
    assert memory.update([gpu(0), gpu(7, slot=1)], now=2000) == ()
    assert uuids(Remembered(tmp_path / "gpus.json").update([gpu(0)], now=3000)) == ["GPU-7"]


def test_a_bus_numbered_anew_does_not_hide_a_lost_gpu() -> None:
    memory = Remembered()
    memory.update([gpu(0), gpu(1), gpu(2)], now=1000)
    assert uuids(memory.update([gpu(0), gpu(2, slot=1)], now=2000)) == ["GPU-1"]
    assert memory.at_slot("0000:01:00.0") == gpu(2, slot=1)  # who was there last


def test_it_is_forgotten_by_time_only_when_told_so() -> None:
    forgets, keeps = Remembered(forget_seconds=DAY), Remembered()
    for memory in (forgets, keeps):
        memory.update([gpu(0), gpu(1)], now=0)
        assert uuids(memory.update([gpu(0)], now=DAY)) == ["GPU-1"]
    assert forgets.update([gpu(0)], now=DAY + 1) == ()
    assert uuids(keeps.update([gpu(0)], now=1000 * DAY)) == ["GPU-1"]


def test_what_is_not_told_now_keeps_what_was_told_before() -> None:
    memory = Remembered()
    memory.update([gpu(0)], now=0)
    memory.update([Identity(None, "GPU-0", "0000:05:00.0", "NVIDIA H100")], now=10)
    [missing] = memory.update([], now=20)
    assert missing == replace(gpu(0), pci_bus_id="0000:05:00.0")


def test_the_file_is_written_when_something_changed_and_once_an_hour(tmp_path: Path) -> None:
    file = tmp_path / "gpus.json"
    memory = Remembered(file)
    memory.update([gpu(0)], now=1000)
    first = os.stat(file).st_ino
    memory.update([gpu(0)], now=1000 + SAVE_SECONDS - 1)
    assert os.stat(file).st_ino == first
    memory.update([gpu(0)], now=1000 + SAVE_SECONDS)
    assert json.loads(file.read_text())["gpus"][0]["seen_at"] == 1000 + SAVE_SECONDS
    memory.update([gpu(0), gpu(1)], now=1001 + SAVE_SECONDS)
    assert len(json.loads(file.read_text())["gpus"]) == 2


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", '{"version": 2, "gpus": []}', '{"version": 1, "gpus": [{"uuid": "GPU-1"}]}',
        '{"version": 1, "gpus": [{"uuid": "", "index": 0, "seen_at": 1}]}',
        '{"version": 1, "gpus": [{"uuid": "GPU-1", "index": "zero", "seen_at": 1}]}',
        '{"version": 1, "gpus": [{"uuid": "GPU-1", "index": -1, "seen_at": 1}]}',
        '{"version": 1, "gpus": [{"uuid": "GPU-1", "index": 0, "seen_at": "today"}]}',
        '{"version": 1, "gpus": [{"uuid": "GPU-1", "index": 0, "color": "green", "seen_at": 1}]}',
        '{"version": 1, "gpus": "none"}', "[" * 100_000,
        '{"version": 1, "gpus": [{"uuid": "GPU-1", "index": 0, "seen_at": NaN}]}',
    ],
)  # fmt: skip
def test_a_broken_file_is_told_and_written_anew(tmp_path: Path, text: str) -> None:
    file = tmp_path / "gpus.json"
    file.write_text(text)
    memory = Remembered(file)
    assert memory.trouble == "broken"
    assert memory.update([gpu(0)], now=1000) == ()
    assert memory.trouble is None
    assert uuids(Remembered(file).update([], now=2000)) == ["GPU-0"]


def test_a_file_that_cannot_be_written_is_told_and_the_memory_goes_on(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    memory = Remembered(tmp_path / "plain" / "gpus.json")
    memory.update([gpu(0), gpu(1)], now=1000)
    assert memory.trouble == "unwritable"
    assert uuids(memory.update([gpu(0)], now=2000)) == ["GPU-1"]


presence = st.lists(st.sets(st.integers(0, 5)), min_size=1, max_size=8)


@given(presence)
def test_nobody_who_kept_a_slot_to_himself_is_ever_lost_sight_of(days: list[set[int]]) -> None:
    memory, ever = Remembered(), set()
    for now, here in enumerate(days):
        missing = memory.update([gpu(number) for number in here], now=float(now))
        ever |= here
        assert {each.index for each in missing} == ever - here
