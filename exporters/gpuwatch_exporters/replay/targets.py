"""Service discovery: one target per node on one address, told apart by the path of its page."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from gpuwatch.errors import InputError
from gpuwatch.files import replace_file

KUBE_STATE_PATH = "/kube-state-metrics/metrics"
SELF_PATH = "/metrics"


def node_path(name: str) -> str:
    """The path of a node's page."""
    return f"/nodes/{quote(name, safe='')}/metrics"


def target_groups(address: str, gpu_nodes: Iterable[str]) -> list[dict[str, object]]:
    """file_sd and http_sd groups: every GPU node, the kube-state page and the replay itself.

    `instance` is set to the node's name: all targets share one address, and would share one `up` series.
    """
    return [
        *(_group(address, "dcgm-exporter", name, node_path(name)) for name in gpu_nodes),
        _group(address, "kube-state-metrics", "kube-state-metrics", KUBE_STATE_PATH),
        _group(address, "gpuwatch-replay", address, SELF_PATH),
    ]


def targets_json(address: str, gpu_nodes: Iterable[str]) -> str:
    """target_groups as JSON text ending in a newline."""
    return json.dumps(target_groups(address, gpu_nodes), indent=1) + "\n"


def write_atomically(path: Path, text: str) -> None:
    """Replaces the file in one step, so that a reader never sees half of it. InputError when it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text, mode=0o644)  # Prometheus, which reads it, runs as another user
    except OSError as err:
        raise InputError(f"cannot write {path}: {err}", todo="choose another --sd-file") from err


def _group(address: str, job: str, instance: str, path: str) -> dict[str, object]:
    return {"targets": [address], "labels": {"__metrics_path__": path, "job": job, "instance": instance}}
