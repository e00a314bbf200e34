"""The kube-state page: which resource a pod asks for, phases, node offers and blocks, and reuse between renderings."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from gpuwatch_exporters.replay.kube_pods import Stamp
from gpuwatch_exporters.replay.kube_state import KubeStatePage
from prometheus_client.parser import text_string_to_metric_families

from gpuwatch.model.cluster import MigInstance
from gpuwatch.model.jobs import Member
from tests.builders import a_gpu, a_job, a_node, a_shape, a_snapshot
from tests.exporters.worlds import NOW, generated

STAMP = Stamp(deleted_seconds=1_000)


def rendered(*nodes, jobs=(), stamp=STAMP, page=None, only=None) -> dict[str, list]:
    text = (page or KubeStatePage()).render(a_snapshot(*nodes, jobs=jobs), only or nodes, stamp)
    return {family.name: family.samples for family in text_string_to_metric_families(text)}


def requests(seen: dict[str, list], pod: str) -> dict[str, float]:
    return {
        s.labels["resource"]: s.value for s in seen["kube_pod_container_resource_requests"] if s.labels["pod"] == pod
    }


def amounts(seen: dict[str, list], family: str, node: str = "n1") -> dict[str, float]:
    return {s.labels["resource"]: s.value for s in seen[family] if s.labels["node"] == node}


def test_the_resource_asked_for_follows_the_device() -> None:
    shared = a_node("n2", gpus=[a_gpu(i, "T4", uuid=f"GPU-t4-{i}", replicas=4) for i in range(2)])
    part = MigInstance(id="1", profile="1g.10gb", compute_slices=1, memory_slices=1)
    cut = a_node("n3", gpus=[a_gpu(uuid="GPU-cut", mig_enabled=True, mig_instances=(part,))])
    jobs = [
        a_job("whole", "n1", [0, 1]),
        a_job("part", "n1", [2], shape=a_shape(milligpu=460)),
        a_job("replica", "n2", [0], shape=a_shape(milligpu=250)),
        a_job("slice", "n3", shape=a_shape(mig_profile="1g.10gb")),
        a_job("waits", shape=a_shape(milligpu=500)),
    ]
    seen = rendered(a_node(), shared, cut, jobs=jobs)
    assert requests(seen, "whole-0") == {"nvidia_com_gpu": 2, "cpu": 4}
    assert requests(seen, "part-0") == {"alibabacloud_com_gpu_count": 1, "alibabacloud_com_gpu_milli": 460, "cpu": 4}
    assert requests(seen, "replica-0") == {"nvidia_com_gpu_shared": 1, "cpu": 4}
    assert requests(seen, "slice-0") == {"nvidia_com_mig_1g_10gb": 1, "cpu": 4}
    assert requests(seen, "waits-0")["alibabacloud_com_gpu_milli"] == 500
    assert amounts(seen, "kube_node_status_capacity", "n2")["nvidia_com_gpu_shared"] == 8
    offered = amounts(seen, "kube_node_status_capacity", "n3")
    assert (offered["nvidia_com_gpu"], offered["nvidia_com_mig_1g_10gb"]) == (0, 1)


def test_phases_and_what_the_scheduler_said() -> None:
    jobs = [
        a_job("runs", "n1", [0]),
        a_job("waits"),
        a_job("held", phase="gated"),
        replace(a_job("done", "n1"), phase="finished"),
        replace(a_job("bound", "n1", [1]), phase="pending"),
    ]
    seen = rendered(a_node(), jobs=jobs)
    phase = {s.labels["pod"]: s.labels["phase"] for s in seen["kube_pod_status_phase"] if s.value}
    assert phase == {
        "runs-0": "Running", "waits-0": "Pending", "held-0": "Pending", "done-0": "Succeeded", "bound-0": "Pending",
    }  # fmt: skip
    assert [s.labels["pod"] for s in seen["kube_pod_status_unschedulable"]] == ["waits-0"]
    scheduled = {s.labels["pod"]: s.labels["condition"] for s in seen["kube_pod_status_scheduled"] if s.value}
    assert scheduled["held-0"] == "false"
    assert scheduled["bound-0"] == "true"
    node = {s.labels["pod"]: s.labels["node"] for s in seen["kube_pod_info"]}
    assert node == {"runs-0": "n1", "waits-0": "", "held-0": "", "done-0": "n1", "bound-0": "n1"}


def test_owners_labels_selectors_and_dates() -> None:
    job = a_job("srv", "n1", [0], owner="Deployment/llm", kind="inference", protected=True, pool="gold", started_at=NOW)
    leaving = replace(a_job("old", "n1", [1]), members=(Member(name="old-0", node="n1", terminating=True),))
    seen = rendered(a_node(), jobs=[job, leaving, a_job("free")], stamp=Stamp(deleted_seconds=1_000, shift_seconds=60))
    owner = {s.labels["pod"]: (s.labels["owner_kind"], s.labels["owner_name"]) for s in seen["kube_pod_owner"]}
    assert owner["srv-0"][0] == "ReplicaSet"
    assert owner["srv-0"][1].startswith("llm-")
    assert owner["free-0"] == ("<none>", "<none>")
    labels = {s.labels["pod"]: s.labels for s in seen["kube_pod_labels"]}
    assert labels["srv-0"]["label_gpuwatch_io_kind"] == "inference"
    assert labels["srv-0"]["label_gpuwatch_io_protected"] == "true"
    assert "label_gpuwatch_io_kind" not in labels["free-0"]
    assert [s.labels["nodeselector_gpuwatch_io_pool"] for s in seen["kube_pod_nodeselectors"]] == ["gold"]
    assert [s.value for s in seen["kube_pod_start_time"]] == [NOW.timestamp() + 60]
    assert [(s.labels["pod"], s.value) for s in seen["kube_pod_deletion_timestamp"]] == [("old-0", 1_000)]


def test_blocks_and_broken_devices_of_nodes() -> None:
    broken = [a_gpu(0), a_gpu(1, health="unhealthy", health_causes=("lost", "xid_79")), a_gpu(2), a_gpu(3)]
    broken[2] = replace(broken[2], health="unhealthy", health_causes=("row_remap_failed",))
    nodes = [
        a_node("n1", gpus=broken),
        a_node("n2", block_causes=("cordoned",)),
        a_node("n3", block_causes=("not_ready",)),
        a_node("n4", block_causes=("maintenance",)),
        a_node("n5", gpus=0),
    ]
    seen = rendered(*nodes)
    assert amounts(seen, "kube_node_status_capacity")["nvidia_com_gpu"] == 4
    assert amounts(seen, "kube_node_status_allocatable")["nvidia_com_gpu"] == 3  # no driver event, still offered
    assert "nvidia_com_gpu" not in amounts(seen, "kube_node_status_capacity", "n5")
    assert {s.labels["node"] for s in seen["kube_node_spec_unschedulable"] if s.value} == {"n2"}
    ready = {
        s.labels["node"]: s.labels["status"]
        for s in seen["kube_node_status_condition"]
        if s.value and s.labels["condition"] == "Ready"
    }
    assert ready == {"n1": "true", "n2": "true", "n3": "false", "n4": "true", "n5": "true"}
    assert {s.labels["node"] for s in seen["kube_node_spec_taint"]} == {"n2", "n3", "n4"}


def test_work_without_a_gpu_is_one_pod_per_node() -> None:
    seen = rendered(a_node(other_cpu_requested_millicores=2500, other_memory_requested_bytes=2**30))
    assert requests(seen, "agents-n1") == {"cpu": 2.5, "memory": 2**30}
    assert seen["kube_pod_info"][0].labels["namespace"] == "kube-system"


def test_serving_some_nodes_leaves_out_the_pods_of_the_others_and_keeps_the_queue() -> None:
    first, second = a_node("n1"), a_node("n2")
    jobs = [a_job("a", "n1", [0]), a_job("b", "n2", [0]), a_job("waits")]
    seen = rendered(first, second, jobs=jobs, only=(first,))
    assert {s.labels["pod"] for s in seen["kube_pod_info"]} == {"a-0", "waits-0"}
    assert {s.labels["node"] for s in seen["kube_node_info"]} == {"n1"}


def test_a_page_that_reuses_blocks_equals_a_fresh_one() -> None:
    page, jobs = KubeStatePage(), [a_job("a", "n1", [0]), a_job("b")]
    rendered(a_node(), jobs=jobs, page=page)
    moved = [a_job("b", "n1", [3]), a_job("c")]
    assert rendered(a_node(), jobs=moved, page=page) == rendered(a_node(), jobs=moved)
    later = Stamp(deleted_seconds=1_000, shift_seconds=5)
    dated = [a_job("a", "n1", [0], started_at=NOW)]
    rendered(a_node(), jobs=dated, page=page)
    assert (
        rendered(a_node(), jobs=dated, page=page, stamp=later)["kube_pod_start_time"][0].value
        == (NOW + timedelta(seconds=5)).timestamp()
    )


def test_the_generated_page_moves_with_its_jobs() -> None:
    replay = generated()
    first = replay.frame.kube_state.plain
    replay.refresh(NOW + timedelta(hours=2))
    assert replay.frame.kube_state.plain != first
    assert generated(at=NOW + timedelta(hours=2)).frame.kube_state.plain == replay.frame.kube_state.plain
