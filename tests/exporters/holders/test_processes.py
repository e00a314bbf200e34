"""Owners of processes: user, container, job."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from gpuwatch_exporters.holders.names import Names
from gpuwatch_exporters.holders.processes import Owner, Processes, container_of_path, owner_uid

from tests.conftest import need_program
from tests.exporters.holders.trees import Node, write

ID = "3f" * 32
OTHER = "a0" * 32


@pytest.mark.parametrize(
    ("path", "container"),
    [
        (f"0::/system.slice/docker-{ID}.scope\n", ID[:12]),
        (f"12:cpuset:/docker/{ID}\n0::/docker/{ID}\n", ID[:12]),
        (
            f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-{ID}.scope",
            ID[:12],
        ),
        (f"0::/kubepods.slice/kubepods-pod1.slice/crio-{ID}.scope\n", ID[:12]),
        (f"4:devices:/kubepods/besteffort/pod8a7d/{ID}\n", ID[:12]),
        (f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope/container\n", ID[:12]),
        (f"0::/machine.slice/libpod-conmon-{OTHER}.scope\n", OTHER[:12]),
        (f"0::/docker/{ID}/docker/{OTHER}\n", OTHER[:12]),  # a container in a container
        ("0::/user.slice/user-1000.slice/session-3.scope\n", ""),
        ("0::/system.slice/slurmstepd.scope/job_1/step_0/user/task_0\n", ""),
        (f"0::/docker/{ID[:-1]}\n", ""),
        ("", ""),
    ],
)
def test_the_container_of_a_process(path: str, container: str) -> None:
    assert container_of_path(path) == container


def test_owners(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.process(10, uid=1001)
    node.process(11, uid=0, cgroup=f"/docker/{ID}")
    node.process(12, uid=1002, cgroup="/system.slice/slurmstepd.scope/job_42/step_0/user/task_0")
    answer = Processes(node.procfs, lambda uid: f"user{uid}").look([10, 11, 12, 13, 14])
    assert answer.by_pid == {
        10: Owner("user1001"),
        11: Owner("user0", container=ID[:12]),
        12: Owner("user1002", job_id="42"),
    }
    assert answer.failures == {"no_such_process": 2}


def test_the_effective_user_counts(tmp_path: Path) -> None:
    write(tmp_path / "5/status", "Name:\tx\nUid:\t1000\t0\t0\t0\n")
    assert owner_uid(tmp_path, 5) == 0
    assert owner_uid(tmp_path, 6) is None


def test_this_process_on_this_machine() -> None:
    assert owner_uid(Path("/proc"), os.getpid()) == os.geteuid()


@pytest.mark.server
def test_in_a_pid_namespace_of_its_own_nothing_is_told() -> None:
    """The driver tells the host's pids, which are other processes there."""
    if os.geteuid() != 0:
        pytest.skip("needs root to make a pid namespace")
    code = (
        "from pathlib import Path; from gpuwatch_exporters.holders.processes import *; import sys\n"
        "try: print(Processes(Path(sys.argv[1]), str).look([1]).by_pid)\n"
        "except SourceOffError as err: print(err.reason)"
    )
    apart = [need_program("unshare"), "--pid", "--fork", "--mount-proc", sys.executable, "-c", code]

    done = subprocess.run([*apart, "/proc"], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "own_pid_namespace"


def test_names_are_kept_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def slow_directory(uid: int) -> object:
        asked.append(uid)
        raise KeyError(uid)

    monkeypatch.setattr("pwd.getpwuid", slow_directory)
    names = Names()
    assert [names.of(7), names.of(7), names.of(8)] == ["7", "7", "8"]
    assert asked == [7, 8]
    for uid in range(100, 1400):
        names.of(uid)
    assert names.of(7) == "7"
    assert asked.count(7) == 2
    monkeypatch.undo()
    assert Names().of(0) == "root"
    assert Names().of(2**40) == str(2**40)  # no uid of this system
