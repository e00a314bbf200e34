"""A stand-in for `nvidia-smi mig` that takes the lines of a plan and refuses what a driver would refuse."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gpuwatch.fit.mig import Slot, taken_by
from gpuwatch.model.catalogue import MigGeometry
from gpuwatch.model.cluster import Gpu

_REMOVAL = re.compile(r"nvidia-smi mig -i (\S+) -dci -gi (\S+) && nvidia-smi mig -i (\S+) -dgi -gi (\S+)")
_LOOKED_UP = re.compile(
    r"for id in \$\(nvidia-smi mig -i (\S+) -lgi \| awk '\$7 ~ /\^\((.+)\)\$/ {print \$6}'\); do (.+); done"
)


class RefusedError(Exception):
    """What a driver would not do."""


@dataclass
class Machine:
    """The devices of one node, by the name that lines use: mode, and instances id -> slot."""

    geometry: dict[str, MigGeometry] = field(default_factory=dict)
    enabled: dict[str, bool] = field(default_factory=dict)
    instances: dict[str, dict[str, Slot]] = field(default_factory=dict)
    busy: set[tuple[str, str]] = field(default_factory=set)

    def add(self, name: str, gpu: Gpu, geometry: MigGeometry, held: set[str]) -> None:
        """One device, with the instances that somebody works on."""
        self.geometry[name] = geometry
        self.enabled[name] = gpu.mig_enabled
        self.instances[name] = {i.id: Slot(i.placement_start or 0, i.profile) for i in gpu.mig_instances}
        self.busy |= {(name, id_) for id_ in held}

    def layout(self) -> dict[str, tuple[bool, list[Slot]]]:
        """Mode and slots of each device."""
        return {name: (self.enabled[name], sorted(slots.values())) for name, slots in self.instances.items()}

    def run(self, line: str) -> None:
        """One line of a plan, or its undo."""
        if line.startswith(("kubectl ", "true")) or line.endswith(" -lgi"):
            return
        if found := re.fullmatch(r"nvidia-smi -i (\S+) -mig ([01])", line):
            if self.instances[found[1]]:
                raise RefusedError("the mode is switched while instances stand")
            self.enabled[found[1]] = found[2] == "1"
        elif found := re.fullmatch(r"nvidia-smi mig -i (\S+) -cgi (\S+) -C", line):
            for told in found[2].split(","):
                profile, start = told.split(":")
                self._create(found[1], Slot(int(start), profile))
        elif found := _LOOKED_UP.fullmatch(line):
            for id_, slot in list(self.instances[found[1]].items()):
                profile = self.geometry[found[1]].profile(slot.profile)
                assert profile is not None
                if f"{slot.start}:{profile.memory_slices}" in found[2].split("|"):
                    self.run(found[3].replace('"$id"', id_))
        elif found := _REMOVAL.fullmatch(line):
            assert (found[1], found[2]) == (found[3], found[4])
            if (found[1], found[2]) in self.busy:
                raise RefusedError(f"instance {found[2]} is in use")
            del self.instances[found[1]][found[2]]
        else:
            raise RefusedError(f"no such line: {line}")

    def _create(self, name: str, slot: Slot) -> None:
        if not self.enabled[name]:
            raise RefusedError("not in MIG mode")
        if taken_by(self.geometry[name], [*self.instances[name].values(), slot]) is None:
            raise RefusedError(f"no room for {slot.profile} at {slot.start}")
        free = next(str(number) for number in range(1, 99) if str(number) not in self.instances[name])
        self.instances[name][free] = slot
