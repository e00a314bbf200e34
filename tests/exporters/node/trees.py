"""Folders that pose as /sys and /proc: GPUs on a PCI bus and the kernel driver's list of them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


class Tree:
    """`sys` and `proc` under one folder; every method may be called again to change what is there."""

    def __init__(self, folder: Path) -> None:
        self.sys, self.proc = folder / "sys", folder / "proc"
        (self.sys / "bus/pci/devices").mkdir(parents=True)
        self.proc.mkdir()

    def device(
        self, address: str, vendor: str = "0x10de", kind: str = "0x030200", driver: str | None = "nvidia",
        status: str | None = "active", virtual: bool = False, control: str = "on",
    ) -> Path:  # fmt: skip
        """A device on the bus."""
        folder = self.sys / "bus/pci/devices" / address
        (folder / "power").mkdir(parents=True, exist_ok=True)
        (folder / "vendor").write_text(vendor + "\n")
        (folder / "class").write_text(kind + "\n")
        if status is not None:
            (folder / "power/runtime_status").write_text(status + "\n")
        (folder / "power/control").write_text(control + "\n")
        link = folder / "driver"
        if link.is_symlink():
            link.unlink()
        if driver is not None:
            os.symlink(f"../../../bus/pci/drivers/{driver}", link)
        if virtual:
            os.symlink("../0000:00:00.0", folder / "physfn")
        return folder

    def unplug(self, address: str) -> None:
        """The device leaves the bus and the driver's list."""
        shutil.rmtree(self.sys / "bus/pci/devices" / address)
        shutil.rmtree(self.proc / "driver/nvidia/gpus" / address, ignore_errors=True)

    def listed(self, address: str, uuid: str, minor: int = 0, model: str = "NVIDIA H100 80GB HBM3") -> Path:
        """The device's page under /proc/driver/nvidia/gpus."""
        folder = self.proc / "driver/nvidia/gpus" / address
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "information").write_text(
            f"Model: \t\t {model}\nIRQ:   \t\t 210\nGPU UUID: \t {uuid}\nVideo BIOS: \t ??.??.??.??.??\n"
            f"Bus Type: \t PCIe\nBus Location: \t {address}\nDevice Minor: \t {minor}\n"
        )
        return folder
