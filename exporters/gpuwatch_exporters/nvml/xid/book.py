"""The book of faults: what was told of each PCI address, counted once. Any thread may write and read."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Collection

from gpuwatch_exporters.device.families import xid as of
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.xid.merge import Merge

OTHER = "other"  # code under which codes are counted once there are too many
_ADDRESSES, _CODES = 64, 256  # more than a node has: what comes from outside must not fill the memory


class XidBook:
    """Counts by PCI address (0000:18:00.0), which a GPU keeps when it is lost."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._xids: dict[str, dict[str, Merge]] = defaultdict(dict)
        self._others: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)  # (what, kind ...) of each address

    def xid(self, witness: str, pci_bus_id: str, code: int, seconds: float) -> bool:
        """Files an XID that a witness told to have happened at this Unix time; whether it is new."""
        with self._lock:
            if _full(self._xids, pci_bus_id, _ADDRESSES):
                return False
            codes = self._xids[pci_bus_id]
            told = OTHER if _full(codes, str(code), _CODES) else str(code)
            if told not in codes:
                codes[told] = Merge()
            return codes[told].report(witness, seconds)

    def count(self, what: str, pci_bus_id: str, *kind: str) -> None:
        """Counts something else: what is "event", "log" or "switch", kind the labels of its family."""
        with self._lock:
            if not _full(self._others, pci_bus_id, _ADDRESSES):
                counts = self._others[pci_bus_id]
                if not _full(counts, (what, *kind), _CODES):
                    counts[what, *kind] += 1

    def values(self, pci_bus_id: str, watched: bool = True) -> list[Value]:
        """Values of the GPU at this address. watched: whether a witness is there, so that no XID means none."""
        with self._lock:
            codes = sorted(self._xids[pci_bus_id].items()) if pci_bus_id in self._xids else []
            others = sorted(self._others[pci_bus_id].items()) if pci_bus_id in self._others else []
            out = [Value(of.XID_ERRORS, (code,), told.count) for code, told in codes]
            out += [Value(of.XID_LAST, (code,), told.last_seconds) for code, told in codes]
            if codes or watched:
                out.append(Value(of.XID_EVENTS, (), sum(told.count for _, told in codes)))
        out += [Value(of.DRIVER_EVENTS, what[1:], times) for what, times in others if what[0] == "event"]
        out += [Value(of.LOG_ERRORS, what[1:], times) for what, times in others if what[0] == "log"]
        return out

    def node_values(self, known: Collection[str]) -> list[Value]:
        """Values of the node: XIDs at addresses other than the known ones, and what NVSwitches told."""
        with self._lock:
            out = [
                Value(of.UNIDENTIFIED_XIDS, (pci, code), told.count)
                for pci in sorted(self._xids.keys() - set(known))
                for code, told in sorted(self._xids[pci].items())
            ]
            out += [
                Value(of.SWITCH_ERRORS, (pci, *what[1:]), times)
                for pci, counts in sorted(self._others.items())
                for what, times in sorted(counts.items())
                if what[0] == "switch"
            ]
        return out


def _full(book: Collection[object], key: object, room: int) -> bool:
    """Whether a new key has no place."""
    return key not in book and len(book) >= room
