"""The kubelet's answer as holdings, from a real gRPC server on a unix socket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from gpuwatch_exporters.holders.holding import LookError, Ref, SourceOffError
from gpuwatch_exporters.holders.podresources.source import PodResources

from tests.exporters.holders.frames import mig_uuid, plain, uuid
from tests.exporters.holders.kubelet import Kubelet, answer, container, pod, serving

pytestmark = pytest.mark.server
FRAME = plain()


@pytest.fixture
def socket(tmp_path: Path) -> Path:
    return tmp_path / "kubelet.sock"


@pytest.fixture
def kubelet(socket: Path) -> Iterator[Kubelet]:
    made = Kubelet()
    with serving(socket, made):
        yield made


def look(socket: Path, seconds: float = 5) -> dict[str, list[Ref]]:
    """pod/container -> refs."""
    told = PodResources(socket, seconds).look(FRAME)
    return {f"{each.pod}/{each.container}": list(each.refs) for each in told.holdings}


def reason(socket: Path, seconds: float = 5) -> str:
    with pytest.raises((LookError, SourceOffError)) as err:
        look(socket, seconds)
    return str(err.value.reason)


def test_device_plugins_of_every_kind(socket: Path, kubelet: Kubelet) -> None:
    kubelet.text = answer(
        pod("whole", container("train", {"nvidia.com/gpu": [uuid(0), uuid(1)]}), container("sidecar")),
        pod("mig", container("a", {"nvidia.com/mig-1g.10gb": [mig_uuid(7)]})),
        pod("old-mig", container("a", {"nvidia.com/mig-3g.20gb": [f"MIG-{uuid(1)}/2/0"]})),
        pod("slice", container("a", {"nvidia.com/gpu.shared": [f"{uuid(2)}::0", f"{uuid(2)}::1"]})),
        pod("by-index", container("a", {"nvidia.com/gpu": ["0"]})),
        pod("renamed", container("a", {"example.com/big": [uuid(3)]})),
        pod("none", container("a", {"cpu.example.com/x": ["0"], "nvidia.com/hostdev": ["0000:11:00.0"]})),
    )
    assert look(socket) == {
        "whole/train": [Ref("text", uuid(0)), Ref("text", uuid(1))],
        "mig/a": [Ref("text", mig_uuid(7))],
        "old-mig/a": [Ref("text", f"MIG-{uuid(1)}/2/0")],
        "slice/a": [Ref("text", f"{uuid(2)}::0"), Ref("text", f"{uuid(2)}::1")],
        "by-index/a": [Ref("index", "0")],
        "renamed/a": [Ref("text", uuid(3))],
    }


def test_an_iommu_group_is_no_index(socket: Path, kubelet: Kubelet) -> None:
    """GPUs passed through to machines are resources of NVIDIA too, named by the number of an IOMMU group."""
    kubelet.text = answer(pod("vm", container("compute", {"nvidia.com/GA102GL_A10": ["0"]})))
    assert look(socket) == {}


def test_dra_claims(socket: Path, kubelet: Kubelet) -> None:
    ours = {"driver_name": "gpu.nvidia.com", "pool_name": "node-a", "device_name": "gpu-1"}
    network = {"driver_name": "dra.net", "pool_name": "node-a", "device_name": "gpu-1"}
    channel = {"driver_name": "compute-domain.nvidia.com", "pool_name": "node-a", "device_name": "channel-0"}
    channel["cdi"] = ["k8s.compute-domain.nvidia.com/claim=u-channel-0"]
    old = {"cdi": ["nvidia.com/gpu=1", f"nvidia.com/gpu={uuid(2)}", "nvidia.com/gpu=all", "example.com/nic=eth0"]}
    kubelet.text = answer(
        pod("a", container("c", claims=({**ours, "cdi": ["k8s.gpu.nvidia.com/claim=u-gpu-1"]}, network, channel))),
        pod("b", container("c", claims=(ours,))),  # the claim is shared
        pod("no-names", container("c", claims=(old,))),
        pod("both", container("c", {"nvidia.com/gpu": [uuid(3)]}, claims=({"driver_name": "gpu.nvidia.com", **old},))),
    )
    named = [Ref("index", "1"), Ref("text", uuid(2))]
    assert look(socket) == {
        "a/c": [Ref("text", "gpu-1")],
        "b/c": [Ref("text", "gpu-1")],
        "no-names/c": named,
        "both/c": [Ref("text", uuid(3)), *named],
    }


def test_an_answer_far_above_four_mebibytes(socket: Path, kubelet: Kubelet) -> None:
    kubelet.text = answer(
        *(
            pod(f"pod-{n}", container("c", {"nvidia.com/gpu": [f"{uuid(n)}::{s}" for s in range(20)]}))
            for n in range(6000)
        )
    )
    assert len(kubelet.text) > 5 * 2**20
    held = look(socket)
    assert len(held) == 6000
    assert held["pod-5999/c"][19] == Ref("text", f"{uuid(5999)}::19")


def test_an_answer_without_a_byte_is_a_node_without_pods(socket: Path, kubelet: Kubelet) -> None:
    assert look(socket) == {}


@pytest.mark.parametrize(
    ("status", "named"),
    [
        (grpc.StatusCode.UNIMPLEMENTED, "unimplemented"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "exhausted"),
        (grpc.StatusCode.INTERNAL, "internal"),
        (grpc.StatusCode.DATA_LOSS, "status_15"),
    ],
)
def test_a_status_is_the_reason(socket: Path, kubelet: Kubelet, status: grpc.StatusCode, named: str) -> None:
    kubelet.status = status
    assert reason(socket) == named


def test_a_method_that_the_kubelet_does_not_have(socket: Path) -> None:
    with serving(socket, Kubelet(), service="v1alpha1.PodResourcesLister"):
        assert reason(socket) == "unimplemented"


def test_a_slow_kubelet_is_left_at_the_deadline(socket: Path, kubelet: Kubelet) -> None:
    kubelet.slow.clear()
    assert reason(socket, 0.2) == "timeout"
    kubelet.slow.set()
    assert look(socket) == {}


def test_a_socket_that_is_absent_and_appears(socket: Path) -> None:
    assert reason(socket) == "no_socket"
    made = Kubelet()
    made.text = answer(pod("a", container("c", {"nvidia.com/gpu": [uuid(0)]})))
    with serving(socket, made):
        assert list(look(socket)) == ["a/c"]
