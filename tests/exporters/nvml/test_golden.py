"""The page of each situation, line by line. A change of the page is a change of what others build on: read the diff.

Numbers that depend on the moment (bytes and joules since the start, seconds that a call took) are masked.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from gpuwatch_exporters.holders import HolderSettings
from gpuwatch_exporters.nvml.exporter import NvmlExporter
from gpuwatch_exporters.nvml.gpm import SHORTEST_SECONDS
from gpuwatch_exporters.nvml.group import GROUPS
from gpuwatch_exporters.nvml.settings import Settings
from prometheus_client.parser import text_string_to_metric_families

from tests.conftest import need_program
from tests.exporters.holders.kubelet import Kubelet, answer, container, pod, serving
from tests.exporters.node.trees import Tree
from tests.exporters.nvml.collector.stage import slot
from tests.fake_nvml.harness import FakeNvml

GOLDEN = Path(__file__).parent / "golden"
GPUS = 2
# Many lines: in one situation alone.
DETAILS = frozenset({"gpm", *(name for name, group in GROUPS.items() if group.detail)})
_OF_THE_MOMENT = (
    r"gpuwatch_(?:\w+_seconds|\w+_bytes_total|gpu_energy_joules_total)|DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
)
_MOMENT = re.compile(rf"^((?:{_OF_THE_MOMENT})\{{.*\}}) \S+$", re.MULTILINE)


class Node:
    """A node with a stand-in library, a PCI bus and a kubelet that is not there."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.stack = folder, stack
        self.tree = Tree(folder)
        self.fake = FakeNvml(folder / "nvml", gpus=GPUS)
        for number in range(GPUS):
            self.tree.device(slot(number))
        (self.tree.proc / "1").mkdir()
        self.compats: tuple[str, ...] = ()
        self.disabled = DETAILS
        self.socket = folder / "kubelet.sock"
        self.log = folder / "kmsg"
        self.between: Callable[[], object] = lambda: None  # what happens between the two cycles

    def uuid(self, kind: str, number: int, gpu: int) -> str:
        """The uuid that the library gives a GPU (number 0) or a MIG device."""
        host = 5381
        for letter in b"node000":
            host = (host * 33 + letter) & 0xFFFFFFFF
        tail = 0xABC00000 + number if kind == "MIG" else 0xDEF00000
        return f"{kind}-{host:08x}-0000-4000-8000-{tail:08x}{gpu:04x}"

    def pods(self, *pods: object) -> None:
        """What the kubelet tells from now on."""
        kubelet = Kubelet()
        kubelet.text = answer(*pods)
        self.stack.enter_context(serving(self.socket, kubelet))

    def page(self) -> str:
        """The page of the second cycle, with the chip's counters, which need a while between two."""
        self.fake.load()
        self.stack.callback(self.fake.unload)
        settings = Settings(
            "node-a",
            compats=self.compats,
            disabled=self.disabled,
            sysfs=self.tree.sys,
            procfs=self.tree.proc,
            kernel_log=self.log,
        )
        holders = HolderSettings(
            sources=("podresources", "process"),
            kubelet_socket=self.socket,
            procfs=self.tree.proc,
            interval=0.0,
            wait=5.0,
        )
        exporter = NvmlExporter(settings, holders)
        try:
            exporter.cycle()
            self.between()
            time.sleep(SHORTEST_SECONDS + 0.05)
            return exporter.cycle()
        finally:
            exporter.close()


def busy(node: Node) -> None:
    """One idle, one at work for a pod."""
    node.fake.write("1 util 83", "1 mem_util 40", "1 procs 0")
    node.pods(pod("train-0", container("main", {"nvidia.com/gpu": [node.uuid("GPU", 0, 1)]})))


def everything(node: Node) -> None:
    """A superchip with every feature; one GPU, since it has many lines."""
    node.fake.write("model NVIDIA GB200", "gpus 1", "0 util 97")
    node.tree.unplug(slot(1))
    node.disabled = frozenset()


def mig(node: Node) -> None:
    """One GPU cut into three instances, two of them held; its power is told once."""
    node.fake.write("mig 0 1 9856", "mig 0 2 20096", "mig 0 4 40448", "0 procs 0", "1 procs 0")
    node.pods(
        pod("nb-1", container("nb", {"nvidia.com/mig-1g.10gb": [node.uuid("MIG", 1, 0)]}), namespace="dev"),
        pod("nb-2", container("nb", {"nvidia.com/mig-2g.20gb": [node.uuid("MIG", 2, 0)]}), namespace="dev"),
    )


def time_sliced(node: Node) -> None:
    """Two pods on one device: one series of each value, two holders."""
    device = node.uuid("GPU", 0, 1)
    node.fake.write("0 procs 0", "1 procs 0")
    node.pods(*(pod(f"infer-{n}", container("main", {"nvidia.com/gpu.shared": [f"{device}::{n}"]})) for n in range(2)))


def lost(node: Node) -> None:
    """A GPU that answers nothing any more, and an XID as its last word."""
    node.fake.write("0 procs 0")
    node.log.write_text(f"4,1,0,-;NVRM: Xid (PCI:{slot(1)[:-2]}): 79, GPU has fallen off the bus.\n")
    node.between = lambda: node.fake.write("err 1 * 15", "0 procs 0")


def suspended(node: Node) -> None:
    """A GPU that the kernel puts to sleep."""
    node.fake.write("0 procs 0")
    node.between = lambda: node.tree.device(slot(1), status="suspended")


def old_driver(node: Node) -> None:
    """A driver without the newer calls."""
    newer = (
        "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetTemperatureV", "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetFieldValues", "nvmlGpmQueryDeviceSupport", "nvmlDeviceGetRemappedRows",
    )  # fmt: skip
    node.fake.write(*(f"err -1 {name} 13" for name in newer), "0 procs 0", "1 procs 0")


def no_driver(node: Node) -> None:
    """A node whose bus has two GPUs, and no driver for them."""
    for number in range(GPUS):
        node.tree.device(slot(number), driver=None)
    node.fake.write("init_err 9")


def dcgm_names(node: Node) -> None:
    """The same as busy, with dcgm-exporter's names beside ours."""
    busy(node)
    node.compats = ("dcgm", "nvidia")


SITUATIONS: dict[str, Callable[[Node], None]] = {
    each.__name__: each
    for each in (busy, everything, mig, time_sliced, lost, suspended, old_driver, no_driver, dcgm_names)
}


@contextmanager
def the_node(folder: Path) -> Iterator[Node]:
    with ExitStack() as stack:
        yield Node(folder, stack)


@pytest.fixture
def page(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    need_program("gcc")
    with the_node(tmp_path) as node:
        SITUATIONS[request.param](node)
        return node.page()


@pytest.mark.server
@pytest.mark.parametrize(("name", "page"), [(name, name) for name in SITUATIONS], indirect=["page"])
def test_page(name: str, page: str) -> None:
    masked = _MOMENT.sub(r"\1 ~", page)
    golden = GOLDEN / f"{name}.prom"
    if os.environ.get("GPUWATCH_UPDATE_GOLDEN"):
        golden.write_text(masked, encoding="utf-8")
    assert masked == golden.read_text(encoding="utf-8")


@pytest.mark.server
@pytest.mark.parametrize(("name", "page"), [(name, name) for name in SITUATIONS], indirect=["page"])
def test_promtool_finds_nothing_to_say(name: str, page: str, promtool_program: str) -> None:
    ours = "".join(line for line in page.splitlines(keepends=True) if not re.search(r"\b(DCGM_|nvidia_)", line))
    said = subprocess.run(
        [promtool_program, "check", "metrics"], input=ours, text=True, capture_output=True, check=False
    )
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")
    families = [each.name for each in text_string_to_metric_families(page)]
    assert len(families) == len(set(families))
