"""The exporter on a real cluster: its numbers against what Slurm's own text says, and what it does without Slurm."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from gpuwatch_exporters.slurm.ask.commands import Commands
from gpuwatch_exporters.slurm.ask.rest import Rest
from gpuwatch_exporters.slurm.count.single import Wanted
from gpuwatch_exporters.slurm.exporter import Settings, SlurmExporter

from tests.conftest import need_program
from tests.exporters.slurm.page import Page
from tests.servers import EXPORTER, running, wait_for
from tests.slurm.cluster import Cluster, cluster

pytestmark = pytest.mark.server
FAST = Settings(timeout_seconds=5, min_call_seconds=0.01, single=Wanted(nodes=True, gpus=True, jobs=True))


@pytest.fixture(scope="module")
def slurm() -> Iterator[Cluster]:
    with cluster() as running_cluster:
        yield running_cluster


@pytest.fixture
def quiet(slurm: Cluster) -> Iterator[Cluster]:
    """The cluster, and no job left behind."""
    yield slurm
    slurm.cancel_all()


def page_of(slurm: Cluster) -> Page:
    return Page(SlurmExporter(Commands(environment=slurm.environment), FAST).cycle())


def test_an_idle_cluster(slurm: Cluster) -> None:
    page = page_of(slurm)
    assert page.get("up") == 1
    assert {dict(labels)["cluster"] for (name, labels) in page.samples if name == "nodes"} == {"emulated"}
    assert page.get("nodes", condition="idle") == 16
    for kind in ("h100", "h200"):
        assert page.get("gpus_installed", gpu_type=kind) == page.get("gpus_free", gpu_type=kind) == 64
        assert page.get("gpus_allocated", gpu_type=kind) == 0
    assert page.get("partition_gpus_installed", partition="h200", gpu_type="h200") == 64
    assert page.get("partition_nodes", partition="all") == 16
    assert page.get("partition_max_time_seconds", partition="h200") == 2 * 86_400
    assert page.get("partition_max_time_seconds", partition="all") is None
    assert page.get("gpus_tracked") == slurm.accounting
    assert page.sum("unknown") == 0


@pytest.mark.parametrize(
    ("options", "rows", "gpus", "shape"),
    [
        (("--gres=gpu:h100:8", "--nodes=2"), 1, 16, ("2", "8")),
        (("--gres=gpu:2",), 1, 2, ("1", "2")),
        (("--gpus=3",), 1, 3, ("1", "3")),
        (("--gpus-per-node=h200:2", "--nodes=3"), 1, 6, ("3", "2")),
        (("--gpus-per-task=1", "--ntasks=4"), 1, 4, ("1", "4")),
        (("--gres=gpu:1", "--array=0-8:2"), 5, 5, ("1", "1")),
        (("--exclusive", "--gres=gpu:1"), 1, 8, ("1", "8")),
        (("--exclusive",), 1, 8, ("1", "8")),
    ],
    ids=lambda held: " ".join(held) if isinstance(held, tuple) and str(held[0]).startswith("-") else "",
)
def test_allocated_gpus_are_squeues(
    quiet: Cluster, options: tuple[str, ...], rows: int, gpus: int, shape: tuple[str, str]
) -> None:
    quiet.wait_for_start(quiet.submit(*options), rows)
    page = page_of(quiet)
    assert page.sum("gpus_allocated") == quiet.gpus_of_scontrol() == gpus
    assert page.sum("jobs_gpus_allocated") == gpus
    assert page.sum("job_gpus_allocated") == page.sum("node_gpus_allocated") == gpus
    assert page.sum("node_gpu_allocated") == gpus
    assert page.sum("gpus_held") == 0
    if quiet.accounting:
        assert quiet.gpus_of_squeue() == gpus
    assert page.get("jobs_by_shape", state="running", nodes=shape[0], gpus_per_node=shape[1]) == rows
    asked = 0 if options == ("--exclusive",) else 1
    assert page.sum("jobs_gpus_unasked") == (gpus - asked if "--exclusive" in options else 0)
    assert page.sum("unknown") == 0


def test_the_components_of_a_heterogeneous_job_are_counted_each(quiet: Cluster) -> None:
    quiet.run("salloc", "--no-shell", "--quiet", "-n1", "--gpus=1", ":", "-n1", "--gpus=2")
    page = page_of(quiet)
    assert page.sum("jobs_gpus_allocated") == page.sum("gpus_allocated") == 3
    ids = {dict(labels)["job_id"] for name, labels in page.samples if name == "job_info"}
    assert len({each.split("+")[0] for each in ids}) == 1
    assert {each.split("+")[1] for each in ids} == {"0", "1"}


def test_a_gpu_given_out_in_shares_is_not_free_for_whole_jobs(quiet: Cluster) -> None:
    quiet.wait_for_start(quiet.submit("--nodelist=node001", "--gres=shard:3"))
    page = page_of(quiet)
    assert page.get("gpus_shared", gpu_type="h100") == 1
    assert page.get("gpus_free", gpu_type="h100") == 63
    assert page.sum("gpus_allocated") == page.sum("jobs_gpus_allocated") == 0
    assert page.get("gres_allocated", gres="shard") == 3
    assert page.sum("gres_installed", gres="shard") == 8 * 32
    refused = quiet.submit("--nodelist=node001", "--gres=gpu:8")
    quiet.wait_for_start(quiet.submit("--nodelist=node001", "--gres=gpu:7"))
    assert quiet.states(refused) == ["PENDING"]


def test_what_waits(quiet: Cluster) -> None:
    quiet.submit("--begin=now+1hour", "--array=0-29", "--gpus=2", "--time=60")
    quiet.submit("--hold", "--nodes=4", "--gpus-per-node=h100:8", "--partition=all,h200")
    pages: list[Page] = []

    def told() -> bool:  # Slurm gives a reason only when it looks at a job first
        pages.append(page_of(quiet))
        return {"BeginTime", "JobHeldUser"} <= {
            dict(held)["reason"] for name, held in pages[-1].samples if name == "pending_jobs"
        }

    wait_for("the reasons", told, every=0.1)
    page = pages[-1]
    assert page.get("pending_jobs", reason="BeginTime") == 30
    assert page.sum("pending_gpus", reason="BeginTime") == 60
    assert page.get("pending_gpus", reason="JobHeldUser", gpu_type="h100") == 32
    assert page.sum("partition_pending_gpus", partition="(several)") == 32
    assert page.get("jobs_by_shape", state="pending", nodes="4", gpus_per_node="8") == 1
    assert page.get("pending_gpu_seconds", partition="all") == 60 * 3600
    assert 0 <= (page.get("pending_oldest_age_seconds", partition="all") or -1) < 60
    assert page.get("pending_oldest_eligible_age_seconds", partition="all") is None
    assert page.sum("gpus_allocated") == 0


def test_a_drained_node_blocks_its_gpus_and_one_that_drains_keeps_its_job(quiet: Cluster) -> None:
    quiet.wait_for_start(quiet.submit("--nodelist=node001", "--gpus=3"))
    names = "node001,node010"
    quiet.run("scontrol", "update", f"nodename={names}", "state=drain", "reason=test")
    try:
        page = page_of(quiet)
        assert page.get("nodes", condition="drained") == page.get("nodes", condition="draining") == 1
        assert page.get("gpus_blocked", gpu_type="h200", condition="drained") == 8
        assert page.get("gpus_blocked", gpu_type="h100", condition="draining") == 5
        assert page.get("gpus_allocated", gpu_type="h100") == 3
        assert page.get("gpus_free", gpu_type="h200") == page.get("gpus_free", gpu_type="h100") == 56
        assert page.get("partition_gpus_free", partition="h200", gpu_type="h200") == 56
        assert page.get("node_info", node="node010", condition="drained") == 1
        assert page.get("nodes_flagged", flag="drain") == 2
    finally:
        quiet.run("scontrol", "update", f"nodename={names}", "state=resume")


def test_a_reservation(quiet: Cluster) -> None:
    start = "starttime=now+1hour"
    quiet.run("scontrol", "create", "reservation=upkeep", start, "duration=120", "nodes=node010,node011", "users=root",
              "flags=maint")  # fmt: skip
    try:
        page = page_of(quiet)
        assert page.get("reservation_nodes", reservation="upkeep") == 2
        assert page.get("reservation_gpus", reservation="upkeep", gpu_type="h200") == 16
        assert page.get("reservation_active", reservation="upkeep") == 0
        assert page.get("reservation_maintenance", reservation="upkeep") == 1
        begins = page.get("reservation_start_timestamp_seconds", reservation="upkeep") or 0
        assert abs(begins - time.time() - 3600) < 90
        assert page.get("reservation_end_timestamp_seconds", reservation="upkeep") == begins + 7200
    finally:
        quiet.run("scontrol", "delete", "reservation=upkeep")


def test_slurmrestd_tells_the_same(quiet: Cluster, tmp_path: Path) -> None:
    quiet.wait_for_start(quiet.submit("--gres=gpu:h100:8", "--nodes=2"))
    quiet.submit("--hold", "--gpus=2")
    socket = quiet.folder / "rest" / "socket"
    socket.parent.mkdir()
    command = [need_program("slurmrestd"), "-a", "rest_auth/local"]
    if os.getuid() == 0:  # it refuses to run as root
        os.chmod(socket.parent, 0o777)
        os.chmod(quiet.folder, 0o755)
        command = [need_program("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups", *command]
    command = [
        "env",
        f"SLURM_CONF={quiet.environment['SLURM_CONF']}",
        "SLURMRESTD_SECURITY=disable_user_check",
        *command,
    ]
    known = subprocess.run([*command, "-s", "list"], capture_output=True, text=True, timeout=20)
    offered = re.findall(r"openapi/(?!\w*db)\S+", known.stdout + known.stderr)  # those of the database need one
    command += ["-s", ",".join(offered), f"unix:{socket}"]
    with running(command, tmp_path / "log", socket.exists):
        rest = Page(SlurmExporter(Rest(f"unix:{socket}"), FAST).cycle())
    direct = page_of(quiet)
    assert rest.get("up") == 1, rest.text
    own = re.compile("call|schema|age_seconds|seconds_left|partition_info")
    told = [{k: v for k, v in page.samples.items() if not own.search(k[0])} for page in (rest, direct)]
    assert told[0] == told[1]
    assert rest.sum("gpus_allocated") == 16


def test_a_stopped_controller_is_counted_and_nothing_is_repeated(quiet: Cluster) -> None:
    quiet.wait_for_start(quiet.submit("--gpus=3"))
    seconds = 1.5
    settings = Settings(timeout_seconds=seconds, min_call_seconds=0.01)
    exporter = SlurmExporter(Commands(environment=quiet.environment), settings)
    before = Page(exporter.cycle())
    assert before.get("up") == 1
    assert before.sum("gpus_allocated") == 3
    quiet.stop_controller()
    try:
        began = time.monotonic()
        gone = Page(exporter.cycle())
        assert time.monotonic() - began < seconds + 1  # killing and reaping on a busy machine included
    finally:
        quiet.start_controller()
    assert gone.get("up") == 0
    assert gone.sum("call_failures_total", command="nodes") == 1
    assert all(gone.get("call_up", command=name) == 0 for name in ("nodes", "jobs", "partitions", "reservations"))
    assert not {name for name in gone.names() if name.startswith(("gpus_inst", "gpus_free", "nodes", "jobs", "partit"))}
    assert any("nodes fail" in note for note in exporter.notes())

    def back() -> bool:
        page = Page(exporter.cycle())
        return page.get("up") == 1 and page.sum("gpus_allocated") == 3

    wait_for("the values after the restart", back, every=0.2)
    after = Page(exporter.cycle())
    assert after.sum("jobs_gpus_allocated") == 3
    assert after.sum("call_failures_total", command="nodes") >= 1


def test_the_program_prints_a_page_that_promtool_likes(slurm: Cluster, promtool_program: str) -> None:
    command = [*EXPORTER, "slurm", "--once", "--per-node", "--cluster", "named"]
    page = subprocess.run(command, env=slurm.environment, capture_output=True, text=True, timeout=30)
    assert page.returncode == 0, page.stderr
    assert Page(page.stdout).sum("gpus_installed", cluster="named") == 128
    checked = subprocess.run(
        [promtool_program, "check", "metrics"], input=page.stdout, capture_output=True, text=True, timeout=30
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
