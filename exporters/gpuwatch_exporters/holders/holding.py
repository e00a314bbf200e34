"""What a source tells: who holds which devices, in the source's own words for a device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

# How a source names a device. text: an id that tells itself (a uuid, a MIG uuid, a PCI address, a name of the DRA
# driver). index: the library's index. minor: N of the device file. number: Slurm's, which is N of the device file
# where these are known. mig: "minor/GPU instance/compute instance".
Kind = Literal["text", "index", "minor", "number", "mig"]


class Ref(NamedTuple):
    """One GPU in a source's words."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class Holding:
    """One holder and its devices. Unknown texts are ""; source as in a Workload."""

    refs: tuple[Ref, ...]
    source: str
    namespace: str = ""
    pod: str = ""
    container: str = ""
    job_id: str = ""
    user: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """One look at a source: everything that it knew, and how often it could not tell something, by reason."""

    holdings: tuple[Holding, ...] = ()
    failures: Mapping[str, int] = field(default_factory=Counter)


class SourceOffError(Exception):
    """The source is not there (no socket, no Slurm): nothing failed, and what it told before no longer holds.

    told: what somebody should do about it; "" where nobody need do anything.
    """

    def __init__(self, reason: str, told: str = "") -> None:
        super().__init__(told or reason)
        self.reason, self.told = reason, told


class LookError(Exception):
    """The source is there and did not answer usably; what it told before holds until it is too old."""

    def __init__(self, reason: str, told: str = "") -> None:
        super().__init__(told or reason)
        self.reason = reason
