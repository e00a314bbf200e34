"""Records of the kernel log: which tell a fault, of whom, and when."""

from __future__ import annotations

import pytest
from gpuwatch_exporters.nvml.xid.line import Told, parse
from hypothesis import given
from hypothesis import strategies as st

GPU = "0000:18:00.0"


def record(text: str, microseconds: int = 5_250_000, priority: int = 4) -> bytes:
    return f"{priority},1234,{microseconds},-;{text}".encode()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("NVRM: Xid (PCI:0000:18:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", 79),
        ("NVRM: Xid (PCI:0000:18:00): 31, pid=4242, name=python3, Ch 00000008, intr 10000000. MMU Fault", 31),
        ("NVRM: Xid (0000:18:00): 13, Graphics Exception on GPC 0", 13),
        ("NVRM: Xid (PCI:00000000:18:00): 62, 0000(0000) 00000000", 62),
        ("NVRM: Xid (PCI:0000:18:00.0): 119, Timeout waiting for RPC from GSP!", 119),
        ("NVRM: Xid (PCI:0000:18:00 GPU-I:03): 45, pid=77, name=train, Ch 0000000b", 45),
        ("NVRM: Xid (PCI:0000:18:00): 120, GSP task exception", 120),
        ("NVRM: Xid (PCI:0000:18:00): 999", 999),
    ],
)
def test_an_xid_is_read_with_its_place_and_time(text: str, code: int) -> None:
    assert parse(record(text)) == Told("xid", GPU, code, 5.25)


def test_domains_keep_what_tells_them_apart() -> None:
    told = parse(record("NVRM: Xid (PCI:0009:01:00): 31, pid=1"))
    assert told is not None
    assert told.pci_bus_id == "0009:01:00.0"
    told = parse(record("NVRM: Xid (PCI:00010000:3B:00): 31, pid=1"))
    assert told is not None
    assert told.pci_bus_id == "10000:3b:00.0"


def test_errors_of_an_nvswitch() -> None:
    text = "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): {}, Link 32 egress non-posted PRIV error (First)"
    assert parse(record(text.format("12028, Non-fatal"))) == Told("sxid", "0000:c1:00.0", 12028, 5.25)
    assert parse(record(text.format("20034, Fatal"))) == Told("sxid_fatal", "0000:c1:00.0", 20034, 5.25)


def test_faults_without_an_xid() -> None:
    assert parse(record("NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.")) == Told("fallen_off_bus", GPU, 0, 5.25)
    assert parse(record("NVRM: GPU 0000:18:00.0: RmInitAdapter failed! (0x62:0x0:2477)")) == Told(
        "init_failed", GPU, 0, 5.25
    )


@pytest.mark.parametrize(
    "text",
    [
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.95.05",
        "NVRM: GPU at PCI:0000:18:00: GPU-00000000-1111-2222-3333-444444444444",
        "NVRM: Xid (PCI:0000:18:00): , no number",
        "NVRM: Xid (PCI:zz): 79",
        "usb 1-1: new device",
        "",
    ],
)
def test_other_lines_tell_nothing(text: str) -> None:
    assert parse(record(text)) is None


def test_a_program_that_writes_to_the_log_proves_nothing() -> None:
    text = "NVRM: Xid (PCI:0000:18:00): 79, forged"
    assert parse(record(text, priority=6)) is not None
    assert parse(record(text, priority=14)) is None  # facility 1: written by a program


@given(st.binary(max_size=200))
def test_no_record_breaks_the_reader(noise: bytes) -> None:
    parse(noise)
    parse(b"4,1,2,-;NVRM: Xid (PCI:0000:18:00" + noise)
    parse(noise + b"NVRM: SXid")
