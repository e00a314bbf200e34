"""A real Slurm cluster for tests: started and stopped by the scripts beside, asked by Slurm's own commands."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import need_program
from tests.servers import wait_for

HERE = Path(__file__).parent
NODES = 16
_NEEDED = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "scontrol", "sinfo")
_ACCOUNTING = ("slurmdbd", "mariadbd", "mariadb-install-db")


@dataclass(frozen=True)
class Cluster:
    """A running cluster. `accounting`: Slurm tracks GPUs in its TRES, which takes a database."""

    folder: Path
    accounting: bool

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "SLURM_CONF": str(self.folder / "etc" / "slurm.conf")}

    def run(self, *command: str, timeout: float = 20) -> str:
        """Standard output of a command; a failure shows what it said."""
        ended = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=timeout)
        assert ended.returncode == 0, f"{command}: {ended.stderr}"
        return ended.stdout.strip()

    def submit(self, *options: str) -> str:
        """Sends a job that sleeps; gives its id."""
        sent = self.run(
            "sbatch", "--parsable", "--output=/dev/null", f"--chdir={self.folder}", *options, "--wrap=sleep 600"
        )
        return sent.partition(";")[0]

    def states(self, job: str) -> list[str]:
        """States of a job's rows."""
        return self.run("squeue", "--noheader", f"--jobs={job}", "--array", "--format=%T").split()

    def wait_for_start(self, job: str, rows: int = 1) -> None:
        """Until so many rows of the job run."""
        wait_for(f"job {job}", lambda: self.states(job).count("RUNNING") == rows, every=0.05)

    def cancel_all(self) -> None:
        """Ends all jobs, and waits until their GPUs are free again."""
        self.run("scancel", "--user", self.run("id", "-un"))
        wait_for(
            "an empty queue", lambda: not self.run("squeue", "--noheader", "--states=pending,running,completing"),
            every=0.05,
        )  # fmt: skip

    def gpus_of_squeue(self) -> int:
        """GPUs of all running jobs as squeue's text has them (0 where Slurm does not track GPUs)."""
        text = self.run("squeue", "--noheader", "--states=running", "--Format=tres-alloc:300")
        return sum(map(int, re.findall(r"gres/gpu=(\d+)", text)))

    def gpus_of_scontrol(self) -> int:
        """GPUs of all running jobs as scontrol's details have them, node by node."""
        text = self.run("scontrol", "--details", "--oneliner", "show", "job")
        running = [line for line in text.splitlines() if "JobState=RUNNING" in line]
        return sum(map(int, re.findall(r"\bJOB_GRES=gpu(?::[^:\s]+)?:(\d+)", " ".join(running))))

    def stop_controller(self) -> None:
        """Ends slurmctld, which writes down its jobs first, and waits until it is gone."""
        pid = int((self.folder / "run" / "slurmctld.pid").read_text())
        os.kill(pid, signal.SIGTERM)
        wait_for("the end of slurmctld", lambda: _has_ended(pid), every=0.02)

    def start_controller(self) -> None:
        """Starts slurmctld again, with what it had."""
        self.run("slurmctld")


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    """A cluster of 16 nodes: node001-008 with 8 GPUs of type h100, node009-016 with 8 of type h200; partitions `all`
    and, of the second half, `h200`. With accounting where the programs for it are installed."""
    for name in _NEEDED:
        need_program(name)
    accounting = all(map(shutil.which, _ACCOUNTING))
    # Paths of sockets must be short, and munged wants no folder that others may write into above its own.
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    try:
        start = [str(HERE / "start.sh"), str(folder), str(_free_ports(NODES + 3)), str(NODES)]
        environment = {**os.environ, "ACCOUNTING": "1" if accounting else "0"}
        with (folder / "start.log").open("wb") as log:
            code = subprocess.run(start, env=environment, stdout=log, stderr=log, timeout=90).returncode
        assert code == 0, (folder / "start.log").read_text()[-3000:]
        yield Cluster(folder, accounting)
    finally:
        subprocess.run([str(HERE / "stop.sh"), str(folder)], timeout=60, check=False)
        shutil.rmtree(folder, ignore_errors=True)


def _has_ended(pid: int) -> bool:
    """Whether the process is gone, or waits for a parent that does not care."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def _free_ports(count: int) -> int:
    """The first of so many ports in a row that nothing listens on, below those that the kernel gives out."""
    first = 20_000 + os.getpid() % 200 * 40
    for begin in (*range(first, 30_000, 40), *range(20_000, first, 40)):
        if all(_is_free(port) for port in range(begin, begin + count)):
            return begin
    raise RuntimeError(f"no {count} free ports in a row")


def _is_free(port: int) -> bool:
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
