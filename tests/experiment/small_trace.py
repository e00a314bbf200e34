"""A small trace folder in a published format, from a seed: it has every size of job and asks for about its capacity."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

from gpuwatch.experiment.task import Task, tasks_of

NODES = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(
    f"n{at},{cpu},262144,{gpus},{model}\n"
    for at, (gpus, cpu, model) in enumerate(
        [(8, 96_000, "G2")] * 5 + [(4, 64_000, "T4")] * 4 + [(2, 32_000, "P100")] * 4
    )
)  # 64 GPUs
# Interpreted kernels: a process that runs a handful of small replays is done before a compiler has started.
NOT_COMPILED = {"NUMBA_DISABLE_JIT": "1"}


def small_trace(folder: Path, workloads: tuple[str, ...] = ("default",)) -> Path:
    """`folder`, filled; the lists differ by their seed."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "openb_node_list_gpu_node.csv").write_text(NODES)
    for workload in workloads:
        (folder / f"openb_pod_list_{workload}.csv").write_text(_pods(random.Random(workload)))
    return folder


def _pods(rng: random.Random) -> str:
    lines = ["name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"]
    for at in range(70):
        gpus = rng.choices((0, 1, 2, 4, 8), (10, 50, 5, 3, 2))[0]
        share = rng.choice((250, 500, 700, 1000)) if gpus == 1 else 1000 * bool(gpus)
        spec = rng.choice(("", "", "G2|T4")) if gpus in (1, 2) else ""
        lines.append(f"p{at:03},{2000 + 2000 * gpus},4096,{gpus},{share},{spec}\n")
    return "".join(lines)


def small_tasks(
    folder: Path,
    policies: tuple[str, ...] = ("best_fit", "fgd"),
    seeds: range = range(42, 45),
    workloads: tuple[str, ...] = ("default",),
    options: Mapping[str, float] | None = None,
) -> tuple[Task, ...]:
    """Tasks over the small trace, which is written if it is not there."""
    small_trace(folder, workloads)
    return tasks_of(folder, "arrivals", workloads, policies, seeds, options or {})
