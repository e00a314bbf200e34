"""What records add up to, where the situation of the page does not show it."""

from __future__ import annotations

from typing import Any

import pytest
from gpuwatch_exporters.slurm.count.jobs import job_samples, tenant_samples, whole_nodes
from gpuwatch_exporters.slurm.count.nodes import node_samples
from gpuwatch_exporters.slurm.count.partitions import partition_gpu_samples, reservation_samples
from gpuwatch_exporters.slurm.count.single import Wanted, single_samples
from gpuwatch_exporters.slurm.count.tally import OTHER, Tally
from gpuwatch_exporters.slurm.read.states import CONDITIONS, HOLDS, TAKES_WORK
from gpuwatch_exporters.slurm.records import Job, Node, Reservation
from hypothesis import given, settings
from hypothesis import strategies as st

NOW = 1_000_000.0


def numbers(tally: Tally) -> dict[tuple[str, ...], float]:
    """Number by family (without prefix) and labels."""
    return {(each.family.name.removeprefix("gpuwatch_slurm_"), *each.labels): each.number for each in tally.samples()}


def node(name: str = "n1", condition: str = "mixed", **changes: Any) -> Node:
    return Node(**{"name": name, "condition": condition, "base": "mixed", "gpus": {"h100": 8}, "gpus_used": {},
                   "partitions": ("a", "b"), **changes})  # fmt: skip


def job(id_: str = "1", state: str = "running", **changes: Any) -> Job:
    return Job(**{"id": id_, "state": state, "partition": "a", "account": "x", "user": "u", "nodes": 1,
                  "gpus": {"h100": 2}, "gpus_asked": {"h100": 2}, "gpus_per_node": 2, **changes})  # fmt: skip


NODES = st.builds(
    node,
    name=st.text("abc", min_size=1, max_size=3),
    condition=st.sampled_from(CONDITIONS),
    gpus=st.dictionaries(st.sampled_from(["h100", "a100"]), st.integers(1, 8), min_size=1),
    gpus_shared=st.dictionaries(st.sampled_from(["h100", "a100"]), st.integers(0, 2)),
    gpus_used=st.none() | st.dictionaries(st.sampled_from(["h100", "a100"]), st.integers(0, 8)),
)


@settings(max_examples=60)
@given(st.lists(NODES, max_size=6), st.sets(st.text("abc", min_size=1, max_size=3)))
def test_installed_is_the_sum_of_its_parts(nodes: list[Node], whole: set[str]) -> None:
    """Where no node uses more than it has."""
    nodes = [
        each
        for each in nodes
        if all(
            each.gpus.get(kind, 0) >= (each.gpus_used or {}).get(kind, 0) + each.gpus_shared.get(kind, 0)
            for kind in ("h100", "a100")
        )
    ]
    told = numbers(node_samples(nodes, whole))
    for kind in {kind for each in nodes for kind in each.gpus}:
        parts = ("allocated", "shared", "held", "free", "unknown")
        total = sum(told[f"gpus_{part}", kind] for part in parts)
        blocked = sum(value for key, value in told.items() if key[0] == "gpus_blocked" and key[1] == kind)
        assert total + blocked == told["gpus_installed", kind] == sum(each.gpus.get(kind, 0) for each in nodes)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_only_some_conditions_take_work(condition: str) -> None:
    told = numbers(node_samples([node(condition=condition, gpus_used={"h100": 3})], ()))
    assert told["gpus_allocated", "h100"] == 3
    if condition in TAKES_WORK:
        assert told["gpus_free", "h100"] == 5
        assert not any(key[0] == "gpus_blocked" for key in told)
    else:
        assert told["gpus_free", "h100"] == 0
        assert told["gpus_blocked", "h100", condition] == 5


def test_a_node_in_two_partitions_counts_once_in_the_cluster_and_once_in_each() -> None:
    nodes = [node(gpus_used={"h100": 3})]
    assert numbers(node_samples(nodes, ()))["gpus_installed", "h100"] == 8
    told = numbers(partition_gpu_samples(nodes, ()))
    assert told["partition_gpus_installed", "a", "h100"] == told["partition_gpus_installed", "b", "h100"] == 8
    assert told["partition_gpus_free", "a", "h100"] == 5


def test_a_node_that_a_job_has_whole_has_no_free_gpus() -> None:
    jobs = [job(exclusive=True, node_names=("n1",)), job(node_names=("n2",)), job(state="completed", exclusive=True)]
    whole = whole_nodes(jobs)
    assert whole == {"n1"}
    told = numbers(node_samples([node(gpus_used={"h100": 2}), node("n2", gpus_used={"h100": 2})], whole))
    assert (told["gpus_held", "h100"], told["gpus_free", "h100"]) == (6, 6)
    assert numbers(partition_gpu_samples([node(gpus_used={"h100": 2})], whole))["partition_gpus_free", "a", "h100"] == 0


def test_while_jobs_are_not_told_what_one_may_have_whole_is_unknown_not_free() -> None:
    nodes = [node(base="allocated", condition="allocated", gpus_used={"h100": 2}), node("n2", gpus_used={"h100": 2})]
    told = numbers(node_samples(nodes, None))
    parts = {part: told[f"gpus_{part}", "h100"] for part in ("allocated", "held", "free", "unknown", "installed")}
    assert parts == {"allocated": 4, "held": 0, "free": 6, "unknown": 6, "installed": 16}
    assert numbers(partition_gpu_samples(nodes, None))["partition_gpus_free", "a", "h100"] == 6


def test_more_in_use_than_installed_frees_nothing_and_loses_nothing() -> None:
    told = numbers(node_samples([node(gpus={"h100": 4}, gpus_used={"h100": 5, "b200": 1})], ()))
    assert told["gpus_free", "h100"] == 0
    assert told["gpus_allocated", "h100"] == 5
    assert told["gpus_allocated", "b200"] == 1


def test_free_gpus_without_cpu_or_memory_are_stranded() -> None:
    told = numbers(
        node_samples(
            [
                node(cpus=8, cpus_used=8, memory_bytes=100, memory_used_bytes=10),
                node("n2", cpus=8, cpus_used=7, memory_bytes=100, memory_used_bytes=100, gpus_used={"h100": 6}),
                node("n3", cpus=8, cpus_used=None),
            ],
            (),
        )
    )
    assert told["gpus_free_stranded", "h100", "cpu"] == 8
    assert told["gpus_free_stranded", "h100", "memory"] == 2
    assert told["cpus_free", "gpu"] == 1
    assert told["cpus_installed", "gpu"] == 16  # a node that does not tell its use is left out of both


@pytest.mark.parametrize("state", HOLDS)
def test_gpus_are_taken_until_the_epilog_is_over(state: str) -> None:
    assert numbers(job_samples([job(state=state)], NOW))["jobs_gpus_allocated", "a", "h100"] == 2


def test_ended_jobs_hold_and_want_nothing() -> None:
    told = numbers(job_samples([job(state="failed", gpus={})], NOW))
    assert told == {("jobs_ended", "failed"): 1}
    assert not numbers(tenant_samples([job(state="failed")], 10, per_user=True))


def test_unknown_states_are_counted_as_jobs_alone() -> None:
    told = numbers(job_samples([job(state="unknown", gpus={}, gpus_asked={})], NOW))
    assert told == {("jobs", "a", "unknown"): 1}


def test_ages_are_never_below_zero_and_the_oldest_wins() -> None:
    jobs = [
        job("1", "pending", submitted_at=NOW + 5, eligible_at=NOW + 5),
        job("2", "pending", submitted_at=NOW - 10, eligible_at=NOW - 5),
        job("3", "pending", submitted_at=NOW - 7, eligible_at=NOW - 7),
    ]
    told = numbers(job_samples(jobs, NOW))
    assert told["pending_oldest_age_seconds", "a"] == 10
    assert told["pending_oldest_eligible_age_seconds", "a"] == 7


def test_accounts_and_reasons_and_shapes_are_bounded() -> None:
    jobs = [
        job(str(i), "pending", account=f"a{i:04d}", user=f"u{i}", reason=f"r{i:04d}", nodes=i + 1, gpus={})
        for i in range(300)
    ]
    tenants = numbers(tenant_samples(jobs, 10, per_user=True))
    for family in ("account_jobs", "user_jobs"):
        assert sum(key[0] == family for key in tenants) == 11
        assert tenants[family, OTHER, "pending"] == 290
    assert ("user_jobs", OTHER, "pending") not in numbers(tenant_samples(jobs, 10, per_user=False))
    told = numbers(job_samples(jobs, NOW))
    assert sum(key[0] == "pending_jobs" for key in told) == 101
    assert sum(key[0] == "jobs_by_shape" for key in told) == 201
    assert sum(value for key, value in told.items() if key[0] == "jobs_by_shape") == 300


def test_single_things_only_where_asked_for_and_never_too_many() -> None:
    nodes, jobs = [node(used_indices=frozenset({1}), gpus_used={"h100": 1})], [job(), job("2", "completed")]
    assert single_samples(nodes, jobs, Wanted()) == []

    def names(wanted: Wanted) -> list[str]:
        return [each.family.name.removeprefix("gpuwatch_slurm_") for each in single_samples(nodes, jobs, wanted)]

    assert names(Wanted(nodes=True)) == ["node_info", "node_gpus_installed", "node_gpus_allocated", "series_left_out"]
    assert names(Wanted(gpus=True)) == ["node_gpu_allocated"] * 8 + ["series_left_out"]
    assert names(Wanted(jobs=True)) == ["job_info", "job_gpus_allocated", "series_left_out"]
    cut = single_samples(nodes, jobs, Wanted(True, True, True, most_series=4))
    assert len(cut) == 5
    assert cut[-1].number == 13 - 4
    assert names(Wanted(gpus=True))[0] == "node_gpu_allocated"
    assert single_samples([node(used_indices=None)], [], Wanted(gpus=True))[:-1] == []


def test_a_reservation_that_is_over_or_of_unknown_nodes() -> None:
    over = Reservation("r", nodes=("n1", "gone"), starts_at=NOW - 10, ends_at=NOW)
    told = numbers(reservation_samples([over, Reservation("s")], [node()], NOW))
    assert told["reservation_active", "r"] == 0
    assert told["reservation_gpus", "r", "h100"] == 8
    assert ("reservation_active", "s") not in told
    assert ("reservation_gpus", "r", "h100") not in numbers(reservation_samples([over], None, NOW))
