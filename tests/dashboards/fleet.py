"""What a fleet exposes, for a real Prometheus to scrape: the daemon's metrics on the generated cluster and DCGM pages.

Two hosts are written by hand in the two name generations; one of them is idle, one hot, one in MIG mode.
"""

from __future__ import annotations

from functools import cache

from prometheus_client import generate_latest

from gpuwatch.engine import evaluate
from gpuwatch.model.evaluation import Evaluation
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.snapshot import SourceHealth
from gpuwatch.render.metrics import Operation, registry
from gpuwatch.simulate.cluster import simulate

# host -> (name generation, utilization %, memory used MiB of 143771, watts of 700, degrees of 87, pod)
HOSTS = {
    "old-busy": ("old", 91, 120000, 655, 71, "train-0"),
    "old-idle": ("old", 0, 900, 110, 35, "notebook-0"),
    "new-hot": ("new", 97, 130000, 690, 86, "train-1"),
    "new-free": ("new", 0, 10, 90, 33, None),
}


@cache
def evaluation() -> Evaluation:
    """A real evaluation of the generated cluster."""
    made = simulate(seed=7)
    done = evaluate(made.snapshot, made.history, AnalysisSettings())
    assert done.failures == ()
    return done


def fleet_counts() -> dict[str, int]:
    """The waterfall of the whole cluster in thousandths of a device."""
    whole = evaluation().waterfall
    assert whole is not None
    return {
        "installed": whole.installed_milligpu,
        "schedulable": whole.schedulable_milligpu,
        "blocked": whole.installed_milligpu - whole.schedulable_milligpu,
        "allocated": whole.allocated_milligpu,
        "idle_held": whole.idle_held_milligpu,
    }


def daemon_page() -> str:
    """What /metrics of the daemon says about it."""
    taken_at = evaluation().snapshot_taken_at
    source = SourceHealth(name="generated", kind="generated", ok=True, observed_at=taken_at)
    operation = Operation(now=taken_at, sources=(source,), stage_seconds={"fit": 0.1}, evaluations=1, ready=True)
    return generate_latest(registry(evaluation(), operation)).decode()


def dcgm_page(host: str, gpus: int = 4) -> str:
    """One host's page in its own spelling of names, units and labels."""
    names, utilization, used, watts, degrees, pod = HOSTS[host]
    old = names == "old"
    mib = 1 if old else 1024 * 1024
    rows = {
        "GPU_UTIL" if old else "GPU_UTIL_RATIO": utilization if old else utilization / 100,
        "FB_USED" if old else "FB_USED_BYTES": used * mib,
        "FB_FREE" if old else "FB_FREE_BYTES": (143771 - used) * mib,
        "POWER_USAGE" if old else "BOARD_POWER_WATTS": watts,
        "ENFORCED_POWER_LIMIT" if old else "BOARD_POWER_LIMIT_ENFORCED_WATTS": 700,
        "GPU_TEMP" if old else "GPU_TEMP_CELSIUS": degrees,
        "SLOWDOWN_TEMP" if old else "GPU_TEMP_SLOWDOWN_CELSIUS": 87,
    }
    lines = []
    for name, value in rows.items():
        for gpu in range(gpus):
            labels = {
                "gpu": gpu, "UUID": f"GPU-{host}-{gpu}", "device": f"nvidia{gpu}", "modelName": "NVIDIA H200",
                "Hostname" if old else "hostname": host,
            }  # fmt: skip
            if pod:
                labels |= {"namespace": "ml", "pod": pod, "container": "main"}
            text = ",".join(f'{key}="{part}"' for key, part in labels.items())
            lines.append(f"DCGM_FI_DEV_{name}{{{text}}} {value}")
    return "\n".join(sorted(lines)) + "\n"
