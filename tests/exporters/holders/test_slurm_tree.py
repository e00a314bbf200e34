"""Where Slurm puts its jobs: cgroup v1 and v2, several daemons on a node, other slices, folders named by SLUID."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpuwatch_exporters.holders.slurm import tree

from tests.exporters.holders.trees import Node, write

SLUID = "s5K1KKYAYG5D00"


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def found(node: Node) -> list[tuple[str, int, int | None]]:
    return sorted((group.named, group.version, group.uid) for group in tree.job_groups(node.cgroupfs))


@pytest.mark.parametrize(
    "scope",
    [
        "system.slice/slurmstepd.scope",
        "system.slice/node-a_slurmstepd.scope",
        "batch.slice/slurmstepd.scope",
        "hpc.slice/hpc-batch.slice/slurmstepd.scope",
        "slurmstepd.scope",
        "unified/system.slice/slurmstepd.scope",
    ],
)
def test_scopes_of_v2(node: Node, scope: str) -> None:
    node.v2("job_123", {"batch": [10, 11], "0": [12]}, scope)
    node.v2(SLUID, {"0": [13]}, scope)
    node.v2("system", {}, scope)  # of slurmstepd itself
    node.v2("job_x", {}, scope)
    assert found(node) == [("123", 2, None), (SLUID, 2, None)]


def test_v1_with_one_and_with_several_daemons(node: Node) -> None:
    node.v1(7, uid=1001)
    node.v1(8, uid=1002, root="slurm_node-a")
    node.v1(7, uid=1001, controller="freezer")  # the same job, in another hierarchy
    node.v1(9, uid=1003, controller="freezer")
    assert found(node) == [("7", 1, 1001), ("8", 1, 1002), ("9", 1, 1003)]
    assert [group.path.parts[-4] for group in tree.job_groups(node.cgroupfs)] == ["devices", "devices", "freezer"]


def test_processes_of_each_step_without_the_ones_that_watch(node: Node) -> None:
    node.v2("job_1", {"batch": [10, 11], "extern": [], "0": [0, 12]}, stepd=99)
    [group] = tree.job_groups(node.cgroupfs)
    assert dict(tree.steps(group)) == {"batch": [10, 11], "extern": [], "0": [12]}  # 0: of another pid namespace
    node.v1(2, steps={"batch": [20], "0": [21]})
    [old] = [group for group in tree.job_groups(node.cgroupfs) if group.version == 1]
    assert dict(tree.steps(old)) == {"batch": [20], "0": [21]}


def test_the_number_of_a_job_known_by_sluid_is_in_the_title_of_slurmstepd(node: Node) -> None:
    node.v2(SLUID, {"batch": [10]}, stepd=node.process(99, uid=0, title="slurmstepd: [4711.batch]"))
    [group] = tree.job_groups(node.cgroupfs)
    assert tree.job_id(group, node.procfs) == "4711"
    write(node.procfs / "99/cmdline", "slurmstepd\0")
    assert tree.job_id(group, node.procfs) == SLUID
    (node.procfs / "99/cmdline").unlink()
    assert tree.job_id(group, node.procfs) == SLUID


def test_a_numbered_folder_needs_no_process(node: Node) -> None:
    node.v2("job_5", {})
    [group] = tree.job_groups(node.cgroupfs)
    assert tree.job_id(group, node.procfs) == "5"


def test_whether_there_is_a_slurm_at_all(node: Node) -> None:
    assert not tree.has_slurm(node.cgroupfs)
    write(node.cgroupfs / "system.slice/sshd.service/cgroup.procs", "1\n")
    assert not tree.has_slurm(node.cgroupfs)
    (node.cgroupfs / "system.slice/slurmstepd.scope").mkdir()
    assert tree.has_slurm(node.cgroupfs)
    assert found(node) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_3\n", ("42", None)),
        ("0::/system.slice/node-a_slurmstepd.scope/job_42/step_batch/user/task_0\n", ("42", None)),
        (f"0::/system.slice/slurmstepd.scope/{SLUID}/step_0/user/task_0\n", (SLUID, None)),
        ("9:name=systemd:/\n4:devices:/slurm/uid_1001/job_7/step_0/task_0\n", ("7", 1001)),
        ("4:memory:/slurm_node-a/uid_1001/job_7\n", ("7", 1001)),
        ("0::/system.slice/slurmstepd.scope/system\n", None),
        ("0::/user.slice/user-1000.slice/job_7\n", None),
        ("", None),
    ],
)
def test_the_job_of_a_process(text: str, expected: tuple[str, int | None] | None) -> None:
    assert tree.job_of_path(text) == expected
