from __future__ import annotations

from pathlib import Path

import pytest
from gpuwatch_exporters.node.pci import PciScan, Slot, kernel_address

from tests.exporters.node.trees import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_only_gpus_of_this_node_count(tree: Tree) -> None:
    tree.device("0000:3b:00.0")
    tree.device("0000:18:00.0", kind="0x030000", status="suspended")
    tree.device("0000:18:00.1", kind="0x040300")  # its audio part
    tree.device("0000:05:00.0", kind="0x068000")  # an NVSwitch
    tree.device("0000:06:00.0", vendor="0x1002")  # another maker's GPU
    tree.device("0000:60:00.0", driver="vfio-pci")  # a virtual machine's
    tree.device("0000:61:00.4", virtual=True)
    tree.device("0000:99:00.0", driver=None, status=None)
    assert PciScan(tree.sys).read() == (
        Slot("0000:18:00.0", "nvidia", "suspended"),
        Slot("0000:3b:00.0", "nvidia", "active"),
        Slot("0000:99:00.0", None, None),
    )


def test_no_bus_to_be_seen_is_unknown_and_an_empty_one_is_none(tree: Tree, tmp_path: Path) -> None:
    assert PciScan(tmp_path / "nowhere").read() is None
    assert PciScan(tree.sys).read() == ()


def test_what_changes_is_seen_by_the_next_look(tree: Tree) -> None:
    scan = PciScan(tree.sys)
    tree.device("0000:18:00.0")
    [slot] = scan.read() or ()
    assert not slot.suspended
    tree.device("0000:18:00.0", status="suspending")
    tree.device("0000:28:00.0")
    first, second = scan.read() or ()
    assert first.suspended
    assert not second.suspended
    tree.device("0000:28:00.0", driver="vfio-pci")
    assert scan.read() == (first,)
    tree.unplug("0000:18:00.0")
    assert scan.read() == ()


@pytest.mark.parametrize(
    ("told", "kernel"),
    [
        ("00000000:3B:00.0", "0000:3b:00.0"),
        ("0000:3b:00.0", "0000:3b:00.0"),
        ("00000009:01:00.0", "0009:01:00.0"),
        ("00010000:01:00.0", "10000:01:00.0"),  # a domain that needs five digits keeps them
        ("strange", "strange"),
    ],
)
def test_addresses_are_spelled_as_the_kernel_does(told: str, kernel: str) -> None:
    assert kernel_address(told) == kernel
