"""All sources together, cycle by cycle."""

from __future__ import annotations

import gc
import os
import threading
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from gpuwatch_exporters.device.frame import Frame, Process, Value, Workload
from gpuwatch_exporters.device.render import render_frame
from gpuwatch_exporters.holders import Holders, HolderSettings

from tests.exporters.holders.frames import by_label, device, frame, instance, mig_uuid, number_of, plain, told, uuid
from tests.exporters.holders.kubelet import Kubelet, answer, container, pod, serving
from tests.exporters.holders.trees import Node, allowing
from tests.servers import wait_for

UP, AGE = "gpuwatch_exporter_holder_source_up", "gpuwatch_exporter_holder_source_age_seconds"
DOWN = "gpuwatch_exporter_holder_source_down_info"
FAILURES = "gpuwatch_exporter_holder_lookup_failures_total"
UNKNOWN = "gpuwatch_exporter_holder_unknown_devices"


class Cycles:
    """One Holders and a clock that the test moves."""

    def __init__(self, settings: HolderSettings) -> None:
        self.holders = Holders(settings)
        self.now = 1000.0
        self.values: tuple[Value, ...] = ()

    def cycle(self, frame_: Frame, seconds: float = 10) -> set[tuple[str, str | None, str]]:
        self.now += seconds
        return told(self.all(frame_))

    def all(self, frame_: Frame) -> tuple[Workload, ...]:
        workloads, self.values = self.holders.read(frame_, self.now)
        return workloads

    def number(self, name: str, *labels: str) -> float | None:
        return number_of(self.values, name, *labels)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.fixture
def settings(node: Node, tmp_path: Path) -> HolderSettings:
    """A node without a kubelet and without Slurm; a long wait, so that a busy machine changes nothing."""
    return HolderSettings(
        kubelet_socket=tmp_path / "kubelet.sock", cgroupfs=node.cgroupfs, procfs=node.procfs, wait=10, kubelet_timeout=9
    )


@pytest.fixture
def cycles(settings: HolderSettings) -> Iterator[Cycles]:
    made = Cycles(settings)
    yield made
    made.holders.close()


def test_nobody_is_there(cycles: Cycles) -> None:
    assert cycles.cycle(plain()) == set()
    assert by_label(cycles.values, UP) == {("podresources",): 0, ("slurm",): 0, ("process",): 1}
    assert by_label(cycles.values, DOWN) == {("podresources", "no_socket"): 1, ("slurm", "no_slurm"): 1}
    assert by_label(cycles.values, FAILURES) == {}
    assert cycles.holders.states() == {"podresources": "no_socket", "slurm": "no_slurm", "process": ""}


def test_sources_that_are_not_asked(settings: HolderSettings) -> None:
    cycles = Cycles(replace(settings, sources=()))
    assert cycles.cycle(plain()) == set()
    assert cycles.values == ()
    assert cycles.holders.states() == dict.fromkeys(("podresources", "slurm", "process"), "disabled")
    assert not _our_threads()


def test_owners_of_processes_where_nobody_else_claims(cycles: Cycles, node: Node) -> None:
    for pid, uid in ((10, 0), (11, 0), (12, 0), (13, 0)):
        node.process(pid, uid)
    node.process(14, 0, cgroup="/system.slice/slurmstepd.scope/job_42/step_0/user/task_0")
    node.v1(7, devices=allowing(1))
    gpus = frame(
        device(0, 0, processes=[Process(10), Process(11), Process(99)]),
        device(1, 1, processes=[Process(12)]),
        device(2, 2, [instance("3", 3), instance("4", 4)], [Process(13, gpu_instance="4")]),
        device(3, 3, processes=[Process(14)]),
    )
    assert cycles.cycle(gpus) == {
        (uuid(0), None, "root"),
        (uuid(1), None, "7"),
        (uuid(2), "4", "root"),
        (uuid(3), None, "42"),
    }
    assert cycles.number(FAILURES, "process", "no_such_process") == 1
    text = render_frame(replace(gpus, workloads=cycles.all(gpus), values=cycles.values))
    assert text.count("gpuwatch_gpu_workload_info{") == 4


def test_a_device_held_as_a_whole_needs_no_owner_of_its_instances(cycles: Cycles, node: Node) -> None:
    node.v1(7, devices=allowing(0))
    node.process(10, 0)
    gpus = frame(device(0, 0, [instance("3", 3)], [Process(10, gpu_instance="3")]))
    assert cycles.cycle(gpus) == {(uuid(0), None, "7")}


def test_a_job_holds_its_devices_without_a_process_and_until_it_ends(cycles: Cycles, node: Node) -> None:
    folder = node.v1(7, devices=allowing(0, 2))
    assert cycles.cycle(plain()) == {(uuid(0), None, "7"), (uuid(2), None, "7")}
    (folder / "devices.list").unlink()
    folder.rmdir()
    assert cycles.cycle(plain()) == set()
    assert cycles.number(UP, "slurm") == 1


def test_a_device_file_of_no_device_here_is_unknown(cycles: Cycles, node: Node, tmp_path: Path) -> None:
    node.v2("job_1", {"batch": [node.process(1, environment={"SLURM_JOB_GPUS": "0,9"})]})
    assert cycles.cycle(plain()) == {(uuid(0), None, "1")}
    assert cycles.number(UNKNOWN, "slurm") == 1


@pytest.mark.server
class TestKubelet:
    @pytest.fixture
    def kubelet(self, settings: HolderSettings) -> Iterator[Kubelet]:
        made = Kubelet()
        with serving(settings.kubelet_socket, made):
            yield made

    def test_mixed_pods(self, cycles: Cycles, kubelet: Kubelet, node: Node) -> None:
        kubelet.text = answer(
            pod("train", container("a", {"nvidia.com/gpu": [uuid(0)]})),
            pod("slice-1", container("a", {"nvidia.com/gpu": [f"{uuid(1)}::0"]})),
            pod("slice-2", container("a", {"nvidia.com/gpu": [f"{uuid(1)}::1", f"{uuid(1)}::2"]})),
            pod("mig", container("a", {"nvidia.com/mig-1g.10gb": [mig_uuid(3)]})),
            pod("claim", container("a", claims=({"driver_name": "gpu.nvidia.com", "device_name": "gpu-3"},))),
            pod("gone", container("a", {"nvidia.com/gpu": [uuid(77)]})),
        )
        gpus = frame(device(0, 0), device(1, 1), device(2, 2, [instance("3", 3)]), device(3, 3))
        assert cycles.cycle(gpus) == {
            (uuid(0), None, "train"),
            (uuid(1), None, "slice-1"),
            (uuid(1), None, "slice-2"),
            (uuid(2), "3", "mig"),
            (uuid(3), None, "claim"),
        }
        assert cycles.number(UNKNOWN, "podresources") == 1
        text = render_frame(replace(gpus, workloads=cycles.all(gpus)))
        shared = f'gpuwatch_gpu_workloads{{node="node-a",gpu="1",uuid="{uuid(1)}"}} 2\n'
        assert shared in text
        node.process(10, 0)
        busy = replace(gpus.devices[2], processes=(Process(10, gpu_instance="3"),))
        assert cycles.cycle(replace(gpus, devices=(busy,))) == {(uuid(2), "3", "mig")}

    def test_a_pod_that_ends_is_gone_with_the_next_map_and_values_keep_their_labels(
        self, cycles: Cycles, kubelet: Kubelet
    ) -> None:
        pages = []
        for name in ("first", "second", None):
            kubelet.text = answer(*([pod(name, container("c", {"nvidia.com/gpu": [uuid(0)]}))] if name else []))
            cycles.now += 10
            pages.append(render_frame(replace(plain(1), workloads=cycles.all(plain(1)))))
        other = [[line for line in page.splitlines() if "workload" not in line] for page in pages]
        assert other[0] == other[1] == other[2] != []
        assert ['pod="first"' in page for page in pages] == [True, False, False]
        assert ['pod="second"' in page for page in pages] == [False, True, False]

    def test_a_failing_kubelet_keeps_the_map_for_a_while(self, cycles: Cycles, kubelet: Kubelet) -> None:
        kubelet.text = answer(pod("a", container("c", {"nvidia.com/gpu": [uuid(0)]})))
        held = cycles.cycle(plain())
        assert cycles.number(AGE, "podresources") == 0
        kubelet.text = b"\xff"
        for age in range(10, 70, 10):
            assert cycles.cycle(plain()) == held
            assert cycles.number(AGE, "podresources") == age
            assert cycles.number(UP, "podresources") == 1
        assert cycles.cycle(plain()) == set()
        assert cycles.number(AGE, "podresources") is None
        assert cycles.number(UP, "podresources") == 0
        assert by_label(cycles.values, DOWN) == {("podresources", "bad_answer"): 1, ("slurm", "no_slurm"): 1}
        assert cycles.number(FAILURES, "podresources", "bad_answer") == 7
        kubelet.text = answer(pod("b", container("c", {"nvidia.com/gpu": [uuid(1)]})))
        assert cycles.cycle(plain()) == {(uuid(1), None, "b")}

    def test_a_slow_kubelet_holds_up_no_cycle(self, settings: HolderSettings, kubelet: Kubelet) -> None:
        kubelet.text = answer(pod("a", container("c", {"nvidia.com/gpu": [uuid(0)]})))
        kubelet.slow.clear()
        cycles = Cycles(replace(settings, wait=0.05))
        began = time.monotonic()
        assert cycles.cycle(plain()) == set()
        assert cycles.cycle(plain()) == set()  # the first question is still open, and is not waited for again
        assert time.monotonic() - began < 1
        assert cycles.number(UP, "podresources") == 0
        kubelet.slow.set()
        wait_for("the late answer", lambda: cycles.cycle(plain(), 0.01), 5, 0.01)
        assert cycles.number(UP, "podresources") == 1
        cycles.holders.close()

    def test_the_kubelet_is_not_asked_in_every_short_cycle(self, cycles: Cycles, kubelet: Kubelet) -> None:
        for _ in range(20):
            cycles.cycle(plain(), 1)
        assert kubelet.calls == 4


@pytest.mark.server
def test_a_kubelet_that_appears_dies_and_comes_back(cycles: Cycles, settings: HolderSettings) -> None:
    kubelet = Kubelet()
    kubelet.text = answer(pod("a", container("c", {"nvidia.com/gpu": [uuid(0)]})))
    assert cycles.cycle(plain()) == set()
    with serving(settings.kubelet_socket, kubelet):
        assert cycles.cycle(plain()) == {(uuid(0), None, "a")}
    settings.kubelet_socket.unlink(missing_ok=True)  # a kubelet that is stopped takes its socket along
    assert cycles.cycle(plain()) == set()
    assert by_label(cycles.values, DOWN)["podresources", "no_socket"] == 1
    with serving(settings.kubelet_socket, kubelet):
        assert cycles.cycle(plain()) == {(uuid(0), None, "a")}


@pytest.mark.server
def test_a_thousand_changes_of_pods_leave_nothing_behind(cycles: Cycles, settings: HolderSettings) -> None:
    kubelet = Kubelet()
    gpus = plain(8)

    def change(number: int) -> None:
        pods = [pod(f"pod-{number}-{n}", container("c", {"nvidia.com/gpu": [uuid(n)]})) for n in range(8)]
        kubelet.text = answer(*pods)
        assert cycles.cycle(gpus) == {(uuid(n), None, f"pod-{number}-{n}") for n in range(8)}

    with serving(settings.kubelet_socket, kubelet):
        for number in range(100):
            change(number)
        gc.collect()
        tracemalloc.start()
        threads, files = _our_threads(), len(os.listdir("/proc/self/fd"))
        before = _held_by_us()
        for number in range(100, 1100):
            change(number)
        gc.collect()
        grown = _held_by_us() - before
        tracemalloc.stop()
        assert _our_threads() == threads
        # the server, in this process too, closes its ends a moment later
        wait_for("closed connections", lambda: len(os.listdir("/proc/self/fd")) <= files, 10, 0.01)
    assert grown < 200_000


def _our_threads() -> list[str]:
    return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("holders-"))


def _held_by_us() -> int:
    """Bytes that code of the exporters holds (the server in this process is not ours)."""
    snapshot = tracemalloc.take_snapshot()
    ours = snapshot.filter_traces([tracemalloc.Filter(True, "*/gpuwatch_exporters/*")])
    return sum(each.size for each in ours.statistics("filename"))
