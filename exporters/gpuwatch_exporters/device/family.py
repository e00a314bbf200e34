"""The metric families of devices: each is declared once, in a file of `families/`, and named here by its constant."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from gpuwatch.registry import Registry

Kind = Literal["gauge", "counter"]
NODE_LABELS = ("node",)
DEVICE_LABELS = ("node", "gpu", "uuid")
INSTANCE_LABEL = "gpu_instance"
_NAME = re.compile(r"gpuwatch_[a-z][a-z0-9_]*[a-z0-9]")


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """One metric. `labels` come after the identity labels, which the renderer adds: node, gpu, uuid, and gpu_instance
    for a MIG instance (node alone in the scope "node"). `help` is one sentence with the unit's meaning.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    scope: Literal["device", "node"] = "device"


FAMILIES: Registry[Family] = Registry("metric family", package="gpuwatch_exporters.device.families")


def _declare(name: str, kind: Kind, help_: str, labels: tuple[str, ...], scope: Literal["device", "node"]) -> Family:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a metric name of ours")
    if (kind == "counter") != name.endswith("_total"):
        raise ValueError(f"{name}: a counter's name ends in _total, and only a counter's")
    return FAMILIES.register(name)(Family(name, kind, help_, labels, scope))


def gauge(name: str, help_: str, *labels: str) -> Family:
    """Declares a gauge of a device or MIG instance. A name declared twice is an error at import."""
    return _declare(name, "gauge", help_, labels, "device")


def counter(name: str, help_: str, *labels: str) -> Family:
    """Declares a counter of a device or MIG instance; its name ends in _total."""
    return _declare(name, "counter", help_, labels, "device")


def node_gauge(name: str, help_: str, *labels: str) -> Family:
    """Declares a gauge of the node."""
    return _declare(name, "gauge", help_, labels, "node")


def node_counter(name: str, help_: str, *labels: str) -> Family:
    """Declares a counter of the node."""
    return _declare(name, "counter", help_, labels, "node")
