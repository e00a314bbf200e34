"""Which job holds which device: device lists before prologs, prologs before environments, indices of the node only."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from gpuwatch_exporters.device.frame import Frame
from gpuwatch_exporters.holders.holding import Holding, LookError, Ref, SourceOffError
from gpuwatch_exporters.holders.slurm.source import SlurmJobs

from tests.exporters.holders.frames import device, frame, instance, mig_uuid, plain, uuid
from tests.exporters.holders.trees import Node, allowing, ordinary_user, write

MIG_MINORS = (
    "config 1\nmonitor 2\ngpu0/gi1/access 30\ngpu0/gi1/ci0/access 31\ngpu0/gi2/access 33\ngpu0/gi2/ci0/access 34\n"
)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def jobs(node: Node, by_job: Path | None = None, by_device: Path | None = None) -> SlurmJobs:
    return SlurmJobs(node.cgroupfs, node.procfs, lambda uid: f"user{uid}", by_job, by_device)


def told(holdings: Iterable[Holding]) -> dict[str, tuple[str, str, str]]:
    """job -> (devices, source, user)."""
    return {each.job_id: (" ".join(ref.text for ref in each.refs), each.source, each.user) for each in holdings}


def look(node: Node, *, gpus: Frame | None = None, **folders: Path) -> dict[str, tuple[str, str, str]]:
    return told(jobs(node, **folders).look(gpus or plain(8)).holdings)


def test_a_device_list_of_v1_holds_without_any_process(node: Node) -> None:
    node.v1(7, uid=1001, devices=allowing(2, 3))
    node.v1(8, uid=1002, devices=allowing())  # a job without a GPU
    assert look(node) == {"7": ("2 3", "slurm_cgroup", "user1001")}


def test_a_device_list_wins_over_the_environment(node: Node) -> None:
    claims = {"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0,1", "SLURM_STEP_GPUS": "0", "CUDA_VISIBLE_DEVICES": "0"}
    node.v1(7, devices=allowing(5), steps={"batch": [node.process(70, environment=claims)]})
    assert look(node) == {"7": ("5", "slurm_cgroup", "user1000")}


@pytest.mark.parametrize("unconstrained", ["a *:* rwm\n", "c 1:3 rwm\nc 195:* rwm\n", None])
def test_a_list_that_constrains_nothing_says_nothing(node: Node, unconstrained: str | None) -> None:
    """The kernel prints no exceptions to "everything", and all of NVIDIA's devices in one line is a site's default."""
    told_so = {"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "4"}
    node.v1(7, devices=unconstrained, steps={"batch": [node.process(70, environment=told_so)]})
    assert look(node) == {"7": ("4", "slurm_environment", "user1000")}


def test_read_only_and_block_devices_are_no_gpus(node: Node) -> None:
    node.v1(7, devices="b 195:1 rwm\nc 195:2 m\nc 195:3 r\nc 195:4 rw\nc 19:5 rwm\nnonsense\n")
    assert look(node) == {"7": ("4", "slurm_cgroup", "user1000")}


def test_mig_instances_by_their_capability_files(node: Node) -> None:
    write(node.procfs / "driver/nvidia-caps/mig-minors", MIG_MINORS)
    node.v1(7, devices=allowing(0, 1, extra="c 235:33 rwm\nc 235:34 rwm\n"))
    node.v1(8, devices=allowing(0))  # of the device, but of none of its instances: told as of the device
    gpus = frame(device(0, 0, [instance("1", 1), instance("2", 2)]), device(1, 1))
    assert look(node, gpus=gpus) == {
        "7": ("0/2/0 1", "slurm_cgroup", "user1000"),
        "8": ("0", "slurm_cgroup", "user1000"),
    }


def test_numbers_of_the_node_are_used_and_renumbered_ones_are_not(node: Node) -> None:
    """CUDA_VISIBLE_DEVICES counts from 0 in every job whose cgroup constrains devices."""
    one = {"SLURM_JOB_ID": "1", "SLURM_JOB_GPUS": "2,3", "CUDA_VISIBLE_DEVICES": "0,1", "GPU_DEVICE_ORDINAL": "0,1"}
    two = {"SLURM_JOB_ID": "2", "CUDA_VISIBLE_DEVICES": "0"}
    three = {"SLURM_JOB_ID": "3", "CUDA_VISIBLE_DEVICES": f"{uuid(6)},{mig_uuid(1)}"}
    node.v2("job_1", {"batch": [node.process(10, environment=one)]})
    node.v2("job_2", {"0": [node.process(20, environment=two)]})
    node.v2("job_3", {"0": [node.process(30, environment=three)]})
    assert look(node) == {
        "1": ("2 3", "slurm_environment", "user1000"),
        "3": (f"{uuid(6)} {mig_uuid(1)}", "slurm_environment", "user1000"),
    }


def test_a_step_on_another_node_carries_the_first_nodes_numbers(node: Node) -> None:
    """srun hands the batch script's variables on: SLURM_JOB_GPUS in a step may be those of another node."""
    handed_on = {"SLURM_JOB_ID": "1", "SLURM_JOB_GPUS": "0,1", "SLURM_JOB_NUM_NODES": "2"}
    node.v2("job_1", {"0": [node.process(10, environment={**handed_on, "SLURM_STEP_GPUS": "6,7"})]})
    node.v2("job_2", {"0": [node.process(20, environment={**handed_on, "SLURM_JOB_ID": "2"})]})
    alone = {**handed_on, "SLURM_JOB_ID": "3", "SLURM_JOB_NUM_NODES": "1"}
    node.v2("job_3", {"0": [node.process(30, environment=alone)]})
    assert look(node) == {
        "1": ("6 7", "slurm_environment", "user1000"),
        "3": ("0 1", "slurm_environment", "user1000"),
    }


def test_the_job_holds_what_all_its_steps_hold(node: Node) -> None:
    def step(gpus: str) -> dict[str, str]:
        return {"SLURM_JOB_ID": "1", "SLURM_STEP_GPUS": gpus, "SLURM_JOB_NUM_NODES": "2"}

    node.v2("job_1", {"0": [node.process(10, environment=step("1"))], "1": [node.process(11, environment=step("4"))]})
    assert look(node) == {"1": ("1 4", "slurm_environment", "user1000")}
    whole = {"SLURM_JOB_ID": "1", "SLURM_JOB_GPUS": "1,4,5"}
    node.v2("job_1", {"batch": [node.process(12, environment=whole)]})
    assert look(node)["1"][0] == "1 4 5"
    node.process(12, environment={"SLURM_JOB_ID": "1", "SLURM_JOB_GPUS": "5"})
    assert look(node)["1"][0] == "5"  # what the job says of itself goes before its steps


def test_the_user_of_a_job_is_not_roots_helper(node: Node) -> None:
    told_so = {"SLURM_JOB_GPUS": "0"}
    pids = [node.process(1, uid=0), node.process(2, uid=1005, environment=told_so)]
    node.v2("job_1", {"batch": pids})
    assert look(node) == {"1": ("0", "slurm_environment", "user1005")}
    node.process(2, uid=0, environment=told_so)
    assert look(node) == {"1": ("0", "slurm_environment", "user0")}


def test_variables_of_another_job_are_not_believed(node: Node) -> None:
    """sbatch within a job hands the outer job's variables on."""
    node.v2("job_2", {"batch": [node.process(20, environment={"SLURM_JOB_ID": "1", "SLURM_JOB_GPUS": "0"})]})
    assert look(node) == {}


def test_a_job_known_by_sluid(node: Node) -> None:
    told_so = {"SLURM_JOB_ID": "4711", "SLURM_JOB_GPUS": "3"}
    stepd = node.process(99, uid=0, title="slurmstepd: [4711.batch]")
    node.v2("s5K1KKYAYG5D00", {"batch": [node.process(10, uid=1007, environment=told_so)]}, stepd=stepd)
    assert look(node) == {"4711": ("3", "slurm_environment", "user1007")}


def test_dead_processes_and_odd_variables(node: Node) -> None:
    write(node.procfs / "11/environ", b"=\0SLURM_JOB_GPUS\0\xff\xfe=\xff\0SLURM_JOB_GPUS=2,x,,GPU\0")
    node.v2("job_1", {"batch": [10, 11]})  # 10 is gone, 11 has no status
    assert look(node) == {"1": ("2", "slurm_environment", "")}


def test_ranges_and_a_range_without_end(node: Node) -> None:
    node.v2("job_1", {"batch": [node.process(1, environment={"SLURM_JOB_GPUS": "0-2, 5"})]})
    node.v2("job_2", {"batch": [node.process(2, environment={"SLURM_JOB_GPUS": "0-99999999999"})]})
    assert look(node)["1"][0] == "0 1 2 5"
    assert len(look(node)["2"][0].split()) == 256


def test_a_user_whose_variables_are_nonsense_hides_no_other_job(node: Node) -> None:
    node.v2(
        "job_1", {"batch": [node.process(1, environment={"SLURM_JOB_GPUS": f"{'9' * 5000},0-{'9' * 5000},\u0663"})]}
    )
    node.v2("job_2", {"batch": [node.process(2, environment={"SLURM_JOB_GPUS": "1"})]})
    assert look(node) == {"2": ("1", "slurm_environment", "user1000")}


def test_an_environment_that_may_not_be_read_is_told(everybodys: Path) -> None:
    node = Node(everybodys)
    node.v2("job_1", {"batch": [node.process(10, environment={"SLURM_JOB_GPUS": "1"})]})
    node.v2("job_2", {"batch": [node.process(20, environment={"SLURM_JOB_GPUS": "2"})]})
    (node.procfs / "10/environ").chmod(0)
    with ordinary_user():
        answer = jobs(node).look(plain())
    assert told(answer.holdings) == {"2": ("2", "slurm_environment", "user1000")}
    assert answer.failures["environment_denied"] == 1


def test_files_named_by_job(node: Node, tmp_path: Path) -> None:
    folder = tmp_path / "jobs"
    write(folder / "7", "1,2\n")
    write(folder / "8", f"{uuid(5)} {mig_uuid(2)}")
    write(folder / "9", "")
    write(folder / ".hidden", "3")
    write(folder / "12345_6", "0")
    node.v2("job_7", {"batch": [node.process(70, uid=1001, environment={"SLURM_JOB_GPUS": "7"})]})
    assert look(node, by_job=folder) == {
        "7": ("1 2", "slurm_job_dir", "user1001"),
        "8": (f"{uuid(5)} {mig_uuid(2)}", "slurm_job_dir", ""),
        "12345_6": ("0", "slurm_job_dir", ""),
    }
    node.v1(7, uid=1001, devices=allowing(4))
    assert look(node, by_job=folder)["7"] == ("1 2", "slurm_job_dir", "user1001")  # the v2 folder is the job's


def test_files_named_by_gpu(node: Node, tmp_path: Path) -> None:
    folder = tmp_path / "gpus"
    write(folder / "0", "7 1001\n")
    write(folder / "1", "7\n8\n\nnot a job\n")
    write(folder / mig_uuid(3), "9\n")
    write(folder / "2.5", "10\n")
    for name in ("notes.txt", "GPU-0.tmp", "GPU-\u00e9", f".{uuid(6)}.swp", "4~"):  # on their way, or nobody's
        write(folder / name, "11\n")
    (folder / "3").mkdir()
    answer = jobs(node, by_device=folder).look(plain())
    assert {each.job_id: each.refs for each in answer.holdings} == {
        "7": (Ref("number", "0"), Ref("number", "1")),
        "8": (Ref("number", "1"),),
        "9": (Ref("text", mig_uuid(3)),),
        "10": (Ref("mig", "2/5/0"),),
    }


def test_a_folder_that_a_prolog_will_make_is_no_fault(node: Node, tmp_path: Path) -> None:
    assert look(node, by_job=tmp_path / "later", by_device=tmp_path / "later") == {}


def test_a_folder_that_is_none(node: Node, tmp_path: Path) -> None:
    with pytest.raises(LookError) as err:
        look(node, by_job=write(tmp_path / "file", ""))
    assert err.value.reason == "job_dir_unreadable"


def test_a_node_without_slurm_and_one_without_jobs(node: Node) -> None:
    with pytest.raises(SourceOffError) as err:
        look(node)
    assert err.value.reason == "no_slurm"
    (node.cgroupfs / "system.slice/slurmstepd.scope").mkdir(parents=True)
    assert look(node) == {}
