"""Hypothesis strategies for odd clusters: over-held, unhealthy, MIG, shared, blocked and unmeasured devices."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import strategies as st

from gpuwatch.model.cluster import Activity, Gpu, MigInstance, Node
from gpuwatch.model.jobs import DeviceShare, Job, Member
from gpuwatch.model.snapshot import ClusterSnapshot
from tests.builders import NOW, a_shape

activities = st.none() | st.builds(
    Activity,
    window_seconds=st.sampled_from([0, 600, 1800, 7200]),
    samples=st.integers(0, 80),
    samples_expected=st.sampled_from([0, 60]),
    peak_ratio=st.none() | st.sampled_from([0.0, 0.005, 0.5, 1.0, float("nan"), 9.2e18]),
    mean_ratio=st.none() | st.floats(0, 1),
    peak_memory_used_bytes=st.none() | st.integers(0, 80 * 2**30),
    signal=st.sampled_from(["engine_active", "utilization", "none"]),
)
instances = st.lists(st.tuples(st.sampled_from([1, 2, 3, 4, 7]), activities), max_size=7).map(
    lambda rows: tuple(
        MigInstance(id=str(i), profile=f"{c}g.10gb", compute_slices=c, memory_slices=c, activity=a)
        for i, (c, a) in enumerate(rows)
    )
)


@st.composite
def gpus(draw, index: int) -> Gpu:
    mig = draw(st.booleans()) and draw(st.booleans())
    return Gpu(
        index=index,
        model=draw(st.sampled_from(["H100-80", "T4", None, "odd card"])),
        health=draw(st.sampled_from(["healthy", "healthy", "unhealthy", "unknown"])),
        mig_enabled=mig,
        mig_instances=draw(instances) if mig else (),
        activity=draw(activities),
    )


@st.composite
def nodes(draw, name: str) -> Node:
    return Node(
        name=name,
        pool=draw(st.sampled_from(["a", "b"])),
        gpus=tuple(draw(gpus(i)) for i in range(draw(st.integers(0, 4)))),
        block_causes=draw(st.sampled_from([(), (), ("cordoned",), ("tainted", "not_ready"), ("odd cause",)])),
    )


shares = st.builds(
    DeviceShare,
    gpu_index=st.integers(0, 5),
    milligpu=st.sampled_from([0, 1, 250, 460, 1000]),
    mig_instance=st.none() | st.sampled_from(["0", "1", "9"]),
)
members = st.builds(
    Member,
    name=st.just("m"),
    node=st.none() | st.sampled_from(["n0", "n1", "n2", "gone"]),
    shares=st.lists(shares, max_size=3).map(tuple),
    devices_known=st.booleans(),
    terminating=st.booleans(),
)


@st.composite
def jobs(draw, name: str) -> Job:
    gpus_wanted = draw(st.integers(0, 5))
    milligpu = draw(st.sampled_from([1, 250, 1000])) if gpus_wanted == 1 else 1000
    return Job(
        id=f"ml/{name}",
        name=name,
        shape=a_shape(gpus=gpus_wanted, milligpu=milligpu, mig_profile=draw(st.sampled_from([None, None, "1g.10gb"]))),
        members=tuple(draw(st.lists(members, max_size=3))),
        phase=draw(st.sampled_from(["running", "pending", "gated", "finished"])),
        kind=draw(st.sampled_from(["training", "inference", "unknown"])),
        pool=draw(st.sampled_from([None, "a", "nowhere"])),
        protected=draw(st.booleans()),
        started_at=draw(st.none() | st.sampled_from([NOW - timedelta(hours=9), NOW, NOW + timedelta(hours=1)])),
    )


@st.composite
def snapshots(draw) -> ClusterSnapshot:
    return ClusterSnapshot(
        cluster="odd",
        taken_at=NOW,
        nodes=tuple(draw(nodes(f"n{i}")) for i in range(draw(st.integers(0, 3)))),
        jobs=tuple(draw(jobs(f"j{i}")) for i in range(draw(st.integers(0, 4)))),
    )
