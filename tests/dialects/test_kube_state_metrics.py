# ruff: noqa: E501 (exposition lines stay as exporters write them)
from __future__ import annotations

from gpuwatch.dialects.dialect import observe
from gpuwatch.model.observations import PodRecord
from tests.dialects.exposition import samples


def pod(text: str, **scraped: str) -> PodRecord:
    (record,) = observe(samples(text, **scraped)).pods
    return record


def test_a_pod_is_put_together_from_its_series():
    record = pod(
        """
        kube_pod_info{namespace="ml",pod="a",uid="1",node="n1",created_by_kind="Job",created_by_name="j",priority_class="high"} 1
        kube_pod_owner{namespace="ml",pod="a",uid="1",owner_kind="PyTorchJob",owner_name="llm",owner_is_controller="true"} 1
        kube_pod_labels{namespace="ml",pod="a",uid="1",label_gpuwatch_io_kind="training"} 1
        kube_pod_status_phase{namespace="ml",pod="a",uid="1",phase="Running"} 1
        kube_pod_status_phase{namespace="ml",pod="a",uid="1",phase="Pending"} 0
        kube_pod_deletion_timestamp{namespace="ml",pod="a",uid="1"} 1.7e9
        kube_pod_start_time{namespace="ml",pod="a",uid="1"} 1.6e9
        kube_pod_container_resource_requests{namespace="ml",pod="a",uid="1",container="c",node="n1",resource="nvidia_com_gpu",unit="integer"} 2
        kube_pod_init_container_resource_requests{namespace="ml",pod="a",uid="1",container="i",node="n1",resource="cpu",unit="core"} 3
        """
    )
    assert (record.node, record.phases, record.priority_class) == ("n1", ("Running",), "high")
    assert (record.owner_kind, record.owner_name) == ("PyTorchJob", "llm")
    assert record.labels == {"gpuwatch_io_kind": "training"}
    assert record.deletion_requested
    assert record.started_seconds == 1.6e9
    assert [(c.name, c.init, dict(c.amounts)) for c in record.containers] == [
        ("c", False, {"nvidia_com_gpu": 2}),
        ("i", True, {"cpu": 3}),
    ]


def test_copies_from_replicas_change_nothing():
    line = (
        'kube_pod_container_resource_requests{namespace="ml",pod="a",uid="1",container="c",resource="nvidia_com_gpu"} 4'
    )
    once = observe(samples(line, instance="a:1"))
    twice = observe(samples(line, instance="a:1") + samples(line, instance="b:1", prometheus_replica="1"))
    assert once.pods == twice.pods


def test_moved_labels_name_the_pod():
    text = (
        'kube_pod_status_phase{exported_namespace="ml",exported_pod="a",namespace="mon",pod="ksm-0",phase="Running"} 1'
    )
    assert (pod(text).namespace, pod(text).name) == ("ml", "a")


def test_gated_is_not_scheduled_and_not_turned_away():
    waiting = 'kube_pod_status_scheduled{namespace="ml",pod="a",condition="false"} 1'
    turned_away = waiting + '\nkube_pod_status_unschedulable{namespace="ml",pod="a"} 1'
    assert pod(waiting).gated
    assert not pod(turned_away).gated
    assert pod(turned_away).unschedulable
    assert pod('kube_pod_status_reason{namespace="ml",pod="a",reason="SchedulingGated"} 1').gated


def test_an_unbound_pod_has_no_node_whether_the_label_is_empty_or_absent():
    assert pod('kube_pod_info{namespace="ml",pod="a",uid="1",node=""} 1').node is None
    assert pod('kube_pod_info{namespace="ml",pod="a",uid="1",created_by_kind="<none>"} 1').owner_kind is None


def test_nodes_and_what_takes_work_off_them():
    (node,) = observe(
        samples(
            """
            kube_node_info{node="n1",internal_ip="10.0.0.1"} 1
            kube_node_labels{node="n1",label_nvidia_com_gpu_count="8",label_gpuwatch_io_pool="a"} 1
            kube_node_status_capacity{node="n1",resource="nvidia_com_gpu",unit="integer"} 8
            kube_node_status_allocatable{node="n1",resource="nvidia_com_gpu",unit="integer"} 7
            kube_node_status_condition{node="n1",condition="Ready",status="true"} 0
            kube_node_status_condition{node="n1",condition="Ready",status="unknown"} 1
            kube_node_status_condition{node="n1",condition="DiskPressure",status="true"} 1
            kube_node_spec_unschedulable{node="n1"} 1
            kube_node_spec_taint{node="n1",key="dedicated",value="x",effect="NoSchedule"} 1
            """
        )
    ).nodes
    assert node.ready is False
    assert node.unschedulable is True
    assert node.taints == (("dedicated", "NoSchedule"),)
    assert (node.capacity["nvidia_com_gpu"], node.allocatable["nvidia_com_gpu"]) == (8, 7)
    assert node.internal_ip == "10.0.0.1"
    assert node.labels["gpuwatch_io_pool"] == "a"


def test_series_without_names_or_numbers_are_counted_out():
    observed = observe(samples('kube_node_info{} 1\nkube_pod_info{pod="a"} 1\nkube_node_labels{node="n"} NaN'))
    assert {(d.metric, d.reason) for d in observed.dropped} == {
        ("kube_node_info", "unknown_label"),
        ("kube_pod_info", "unknown_label"),
        ("kube_node_labels", "not_finite"),
    }


def test_an_unbound_pod_does_not_stand_on_the_exporters_machine():
    scraped = {"job": "ksm", "instance": "k:8080", "node": "kube-host", "pod": "ksm-0", "namespace": "mon"}
    moved = """
        kube_pod_info{exported_namespace="ml",exported_pod="bound",exported_node="n1"} 1
        kube_pod_info{exported_namespace="ml",exported_pod="free"} 1
        """
    pods = {p.name: p.node for p in observe(samples(moved, **scraped)).pods}
    assert pods == {"bound": "n1", "free": None}
    honored = """
        kube_pod_info{namespace="ml",pod="free"} 1
        kube_pod_status_scheduled{namespace="ml",pod="free",condition="false"} 1
        """
    assert [p.node for p in observe(samples(honored, **scraped)).pods] == [None]


def test_absurd_amounts_are_counted_out_and_never_built():
    observed = observe(
        samples(
            """
            kube_node_status_capacity{node="n1",resource="nvidia_com_gpu"} 1e9
            kube_node_status_allocatable{node="n1",resource="nvidia_com_mig_1g_10gb"} -1
            kube_node_status_allocatable{node="n1",resource="memory"} 2e12
            """
        )
    )
    assert [(d.reason, d.count) for d in observed.dropped] == [("out_of_range", 1), ("out_of_range", 1)]
    assert dict(observed.nodes[0].allocatable) == {"memory": 2e12}
