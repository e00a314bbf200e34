"""What the NVML exporter can be told, apart from how it is served and who holds the devices."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DAY_SECONDS = 86400.0


@dataclass(frozen=True, slots=True)
class Settings:
    """interval: seconds between cycles, as the serving room keeps it. device_timeout: seconds that a cycle waits for
    the devices. disabled: features (ids of groups) that are not read. state_file None: no memory over a restart.
    forget_seconds None: a missing device is missed for ever. process_memory: processes of each device whose memory is
    told one by one. whole_node False: some of the node's devices are not ours, so that those on its bus are not missed.
    expected_gpus: how many devices should be here; None: as many as are found."""

    node: str
    interval: float = 10.0
    device_timeout: float = 0.8
    disabled: frozenset[str] = frozenset()
    compats: tuple[str, ...] = ()
    sysfs: Path = Path("/sys")
    procfs: Path = Path("/proc")
    kernel_log: Path = Path("/dev/kmsg")
    state_file: Path | None = None
    forget_seconds: float | None = 30 * DAY_SECONDS
    process_memory: int = 0
    whole_node: bool = True
    expected_gpus: int | None = None
