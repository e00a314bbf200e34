"""The GPUs that this node has had: a lost one is missed also after a restart, a replaced one is not.

Kept in a small file, if one is named: written when something changed, and once an hour for the times.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from gpuwatch.files import replace_file
from gpuwatch_exporters.device.frame import Identity

log = logging.getLogger(__name__)
SAVE_SECONDS = 3600.0
MOST = 256  # devices; a file that holds more is not ours


def _at_once(work: Callable[[], None]) -> bool:
    work()
    return True


@dataclass(frozen=True, slots=True)
class _Seen:
    identity: Identity
    at: float  # Unix seconds


@dataclass
class Remembered:
    """Devices by uuid. `file` None: for this process's life only. `forget_seconds` None: never by time alone.

    write: what does the writing, on a thread of its own if disks may hang; what it returns is false where it did not
    take the work. It is tried again then.
    """

    file: Path | None = None
    forget_seconds: float | None = None
    write: Callable[[Callable[[], None]], object] = _at_once
    trouble: str | None = None  # why the file is of no use: unreadable, broken, unwritable
    _seen: dict[str, _Seen] = field(default_factory=dict)
    _saved_at: float | None = None
    _changed: bool = False

    def __post_init__(self) -> None:
        if self.file is None or not self.file.exists():
            return
        try:
            self._seen = _parsed(self.file.read_text(encoding="utf-8"))
        except OSError as err:
            self._tell("unreadable", err)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as err:
            self._tell("broken", err)

    def update(self, present: Iterable[Identity], now: float) -> tuple[Identity, ...]:
        """Notes who is here at Unix time `now` and returns who is missing, by index.

        A missing device is forgotten when a uuid never seen before sits in its slot (it was replaced; a known one there
        was only numbered anew), and when it has been gone longer than forget_seconds.
        """
        here = {each.uuid: each for each in present if each.uuid}
        new_slots = {each.pci_bus_id for uuid, each in here.items() if uuid not in self._seen and each.pci_bus_id}
        for uuid in [uuid for uuid in self._seen if uuid not in here]:
            seen = self._seen[uuid]
            aged = self.forget_seconds is not None and now - seen.at > self.forget_seconds
            if aged or seen.identity.pci_bus_id in new_slots:
                log.info("forgotten: %s in slot %s", uuid, seen.identity.pci_bus_id or "unknown")
                del self._seen[uuid]
                self._changed = True
        for uuid, identity in here.items():
            known = self._seen.get(uuid)
            merged = _merged(known.identity, identity) if known else identity
            self._changed |= known is None or known.identity != merged
            self._seen[uuid] = _Seen(merged, now)
        self._save(now)
        missing = (seen.identity for uuid, seen in self._seen.items() if uuid not in here)
        return tuple(sorted(missing, key=lambda each: (each.index is None, each.index or 0, each.uuid)))

    def at_slot(self, pci_bus_id: str) -> Identity | None:
        """Who was last seen in this slot."""
        there = [seen for seen in self._seen.values() if seen.identity.pci_bus_id == pci_bus_id]
        return max(there, key=lambda seen: seen.at).identity if there else None

    def _save(self, now: float) -> None:
        due = self._saved_at is None or now - self._saved_at >= SAVE_SECONDS or now < self._saved_at
        if self.file is None or not (self._changed or due):
            return
        gpus = [{**asdict(seen.identity), "seen_at": seen.at} for seen in self._seen.values()]
        text = json.dumps({"version": 1, "gpus": gpus}, indent=1) + "\n"
        if self.write(partial(self._put, self.file, text)):
            self._saved_at, self._changed = now, False  # one that fails is tried again in an hour or at the next change

    def _put(self, file: Path, text: str) -> None:
        try:
            replace_file(file, text)
        except OSError as err:
            self._tell("unwritable", err)
        else:
            self.trouble = None

    def _tell(self, trouble: str, err: Exception) -> None:
        if self.trouble != trouble:
            log.warning("the memory of GPUs in %s is %s: %s", self.file, trouble, err)
        self.trouble = trouble


def _merged(known: Identity, told: Identity) -> Identity:
    """What is told now; what is not told now, as it was told before."""
    gaps = {name: value for name, value in asdict(known).items() if getattr(told, name) in ("", None)}
    return replace(told, **gaps)


def _parsed(text: str) -> dict[str, _Seen]:
    document: Any = json.loads(text)
    if document["version"] != 1 or len(document["gpus"]) > MOST:
        raise ValueError("not a file of this version")
    seen: dict[str, _Seen] = {}
    for each in document["gpus"]:
        at = float(each.pop("seen_at"))
        identity = Identity(**each)
        texts = (identity.uuid, identity.pci_bus_id, identity.model, identity.serial, identity.driver_version)
        numbers = (identity.index, identity.minor)
        if not math.isfinite(at):
            raise ValueError("a time that is no time")
        if not (identity.uuid and all(isinstance(text, str) for text in texts)):
            raise ValueError("a device without a uuid")
        if not all(number is None or (isinstance(number, int) and number >= 0) for number in numbers):
            raise ValueError("a device's index or minor is not a number")
        seen[identity.uuid] = _Seen(identity, at)
    return seen
