"""What one record of the kernel log tells of a GPU or NVSwitch.

A record is `priority,sequence,microseconds,flags;text`, as the kernel writes it to readers of /dev/kmsg.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from gpuwatch_exporters.node.pci import kernel_address

Kind = Literal["xid", "sxid", "sxid_fatal", "fallen_off_bus", "init_failed"]

# Priorities from 8 on are records that a program wrote, not the kernel: they prove nothing.
_RECORD = re.compile(rb"[0-7],\d+,(\d+),[^;]*;(.*)", re.DOTALL)
_PLACE = r"(?:PCI:)?(?P<pci>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-7])?)"
_XID = re.compile(rf"NVRM: Xid \({_PLACE}[^)]*\): (?P<code>\d+)", re.IGNORECASE)
_SXID = re.compile(rf"SXid \({_PLACE}[^)]*\): (?P<code>\d+),? *(?P<severity>(?:Non-)?fatal)?", re.IGNORECASE)
_FALLEN = re.compile(rf"NVRM:.*\bGPU (?:at )?{_PLACE}.*fallen off the bus", re.IGNORECASE | re.DOTALL)
_INIT = re.compile(rf"NVRM: GPU (?:at )?{_PLACE}.*RmInitAdapter failed", re.IGNORECASE | re.DOTALL)


class Told(NamedTuple):
    """One fault: where (0000:18:00.0), its number (XID or SXID; 0 where it has none), and when, in seconds since the
    kernel started."""

    kind: Kind
    pci_bus_id: str
    code: int
    uptime_seconds: float


def parse(record: bytes) -> Told | None:
    """The fault that the record tells; None for any other record, however broken."""
    if b"NVRM" not in record and b"SXid" not in record:  # nearly all are somebody else's
        return None
    found = _RECORD.match(record)
    if found is None:
        return None
    at, text = int(found[1]) / 1e6, found[2].decode("utf-8", "replace")
    if hit := _XID.match(text):
        return Told("xid", _address(hit), int(hit["code"]), at)
    if hit := _SXID.search(text):
        fatal = (hit["severity"] or "").lower() == "fatal"
        return Told("sxid_fatal" if fatal else "sxid", _address(hit), int(hit["code"]), at)
    if hit := _FALLEN.match(text):
        return Told("fallen_off_bus", _address(hit), 0, at)
    if hit := _INIT.match(text):
        return Told("init_failed", _address(hit), 0, at)
    return None


def _address(hit: re.Match[str]) -> str:
    told = kernel_address(hit["pci"])
    return told if "." in told else f"{told}.0"  # XIDs leave the function out; a GPU's is 0
