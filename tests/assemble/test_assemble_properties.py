"""What must hold of any scrape, however odd: no exception, no negative or invented count, copies change nothing."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.assemble.snapshot import assemble
from gpuwatch.dialects.dcgm import TABLE
from gpuwatch.dialects.dialect import observe
from gpuwatch.dialects.kube_state_metrics import NODE_TABLE, POD_TABLE
from gpuwatch.fit.booking import book
from gpuwatch.model.codec import dump_snapshot, load_snapshot
from gpuwatch.model.observations import Sample
from gpuwatch.model.snapshot import ClusterSnapshot
from tests.builders import NOW

_TEXTS = {
    "gpu": ["0", "1", "7", "x", ""],
    "UUID": ["GPU-a", "GPU-b", "MIG-GPU-a/1/0", ""],
    "Hostname": ["n1", "n2", "n1.example.org", "other"],
    "hostname": ["n1", "n3"],
    "modelName": ["NVIDIA H100 80GB HBM3", "mystery"],
    "GPU_I_ID": ["1", "2", ""],
    "GPU_I_PROFILE": ["1g.10gb", "3g.40gb", "NULL"],
    "namespace": ["ml", "ops"],
    "pod": ["a", "b", "c", "dcgm-exporter-x"],
    "exported_pod": ["a", "b"],
    "exported_namespace": ["ml"],
    "uid": ["1", "2", ""],
    "node": ["n1", "n2", "n9", ""],
    "phase": ["Running", "Pending", "Succeeded", "Failed", "Unknown"],
    "container": ["c", "d"],
    "resource": [
        "nvidia_com_gpu", "nvidia_com_gpu_shared", "nvidia_com_mig_1g_10gb", "nvidia_com_mig_9g_1gb", "cpu", "memory",
        "nvidia_com_gpucores", "nvidia_com_gpumem", "alibabacloud_com_gpu_count", "alibabacloud_com_gpu_milli",
    ],
    "label_nvidia_com_gpu_replicas": ["1", "4", "many", "0"],
    "label_nvidia_com_gpu_count": ["2", "8", "-1"],
    "label_nvidia_com_gpu_product": ["NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"],
    "condition": ["Ready", "false", "true"],
    "status": ["true", "false", "unknown"],
    "key": ["team", "node.kubernetes.io/not-ready"],
    "effect": ["NoSchedule", "PreferNoSchedule"],
    "owner_kind": ["PyTorchJob", "ReplicaSet"],
    "owner_name": ["o"],
    "job": ["dcgm", "ksm"],
    "instance": ["n1:9400", "10.0.0.1:9400", "[::1]:1"],
    "xid": ["79", "13"],
}  # fmt: skip
# What a series of the family always has; the other labels come and go.
_FAMILIES = (
    (sorted(TABLE), ("gpu", "UUID", "Hostname", "namespace", "pod")),
    (sorted(TABLE), ("gpu", "UUID", "Hostname", "GPU_I_ID", "GPU_I_PROFILE")),
    (sorted(NODE_TABLE), ("node", "resource", "condition", "status")),
    (["kube_node_status_capacity", "kube_node_status_allocatable"], ("node", "resource")),
    (sorted(POD_TABLE), ("namespace", "pod", "container", "resource", "node")),
    (["kube_pod_status_phase"], ("namespace", "pod", "phase")),
    (["kube_pod_container_resource_requests"], ("namespace", "pod", "container", "resource", "node")),
    (["up"], ("job", "instance")),
)


def _series(family: tuple[list[str], tuple[str, ...]]) -> st.SearchStrategy[Sample]:
    names, always = family
    some = {name: st.sampled_from(texts) for name, texts in _TEXTS.items()}
    labels = st.one_of(
        st.fixed_dictionaries({name: some[name] for name in always}),
        st.fixed_dictionaries(
            {name: some[name] for name in always},
            optional={name: texts for name, texts in some.items() if name not in always},
        ),
        st.fixed_dictionaries({}, optional=some),
    )
    statistics = st.sampled_from(["now", "now", "now", "peak", "mean", "samples"])
    return st.builds(Sample, metric=st.sampled_from(names), labels=labels, value=_VALUES, statistic=statistics)


_VALUES = st.one_of(
    st.sampled_from([0.0, 0.5, 1.0, 2.0, 8.0, 79.0, 100.0, 1e9, 9.223372036854775794e18, math.nan, math.inf, -1.0]),
    st.floats(allow_nan=True, allow_infinity=True),
)
_SAMPLES = st.lists(st.one_of([_series(family) for family in _FAMILIES]), min_size=15, max_size=60)


def read(samples: list[Sample]) -> ClusterSnapshot:
    return assemble(observe(samples, 1800), cluster="odd", taken_at=NOW)


def whole(samples: list[Sample]) -> ClusterSnapshot:
    """The snapshot of a scrape, after everything that must hold of any has been looked at."""
    snapshot = read(samples)
    for node in book(snapshot).nodes.values():
        assert all(0 <= free <= left <= 1000 for free, left in zip(node.free_milligpu, node.left_milligpu, strict=True))
    for node in snapshot.nodes:
        assert len({gpu.index for gpu in node.gpus}) == len(node.gpus)
        for gpu in node.gpus:
            assert (gpu.telemetry is None) == (gpu.telemetry_reason is not None)
            assert (gpu.activity is None) == (gpu.activity_reason is not None)
            if gpu.activity:
                assert 0 <= gpu.activity.samples <= gpu.activity.samples_expected
    uuids = [gpu.uuid for node in snapshot.nodes for gpu in node.gpus if gpu.uuid]
    assert len(uuids) == len(set(uuids))
    ids = [job.id for job in snapshot.jobs]
    assert len(ids) == len(set(ids))
    assert load_snapshot(dump_snapshot(snapshot)) == snapshot
    return snapshot


def test_any_scrape_gives_a_snapshot_that_can_be_booked_and_written():
    """The odd scrapes do hold jobs, devices and slices; without the count at the end they might all be empty."""
    kinds = {"jobs": 0, "bound": 0, "gpus": 0, "slices": 0, "findings": 0}

    @settings(max_examples=150)
    @given(_SAMPLES)
    def check(samples):
        snapshot = whole(samples)
        gpus = [gpu for node in snapshot.nodes for gpu in node.gpus]
        kinds["jobs"] += bool(snapshot.jobs)
        kinds["bound"] += any(member.node for job in snapshot.jobs for member in job.members)
        kinds["gpus"] += bool(gpus)
        kinds["slices"] += any(gpu.mig_instances for gpu in gpus)
        kinds["findings"] += bool(snapshot.findings)

    check()
    assert min(kinds.values()) >= 5, kinds


@settings(max_examples=80)
@given(_SAMPLES)
def test_copies_and_order_change_nothing_but_counts_of_copies(samples):
    once, twice = read(samples), read([*reversed(samples), *samples])
    assert (once.nodes, once.jobs) == (twice.nodes, twice.jobs)
