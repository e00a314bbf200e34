"""Small builders of PromQL text that give every exporter's series one spelling of its identity labels."""

from __future__ import annotations

from gpuwatch_dashboards.rules.metrics import Spelling

IDENTITY = "cluster, hostname, gpu, uuid, model"

# The first label that is set wins. A host name set by relabeling comes before the exporter's own, so that `up` and the
# readings of a host carry the same name; the scrape address is the last resort.
_HOST = ("hostname", "Hostname", "node", "instance")
_UUID = ("uuid", "UUID")
_MODEL = ("model", "modelName")
_WORKLOAD = ("exported_pod", "pod_name", "hpc_job", "pod")
_NAMESPACE = ("exported_namespace", "pod_namespace", "namespace")


_FIRST = ";*([^;]+)(;.*)?"
_FIRST_WITHOUT_PORT = ";*([^;]+?)(:[0-9]+)?(;.*)?"


def _first_label(expression: str, target: str, candidates: tuple[str, ...], pattern: str = _FIRST) -> str:
    names = ", ".join(f'"{name}"' for name in candidates)
    joined = f'label_join({expression}, "gw_join", ";", {names})'
    return f'label_replace({joined}, "{target}", "$1", "gw_join", "{pattern}")'


def with_identity(expression: str) -> str:
    """`expression` with hostname, uuid and model set whichever spelling the exporter used."""
    expression = _first_label(expression, "hostname", _HOST, _FIRST_WITHOUT_PORT)
    return _first_label(_first_label(expression, "uuid", _UUID), "model", _MODEL)


def with_workload(expression: str) -> str:
    """`expression` with namespace and workload (pod or batch job) set whichever spelling the exporter used."""
    return _first_label(_first_label(expression, "workload", _WORKLOAD), "namespace", _NAMESPACE)


def seen_devices(expression: str, *, workloads: bool = False) -> str:
    """One series of value 1 per device (and workload) as the exporters spell it.

    Rewriting labels is the dear part of a rule, so many metrics of one device are made one series before it.
    """
    labels = ("cluster", "gpu", *_HOST, *_UUID, *_MODEL, *((*_WORKLOAD, *_NAMESPACE) if workloads else ()))
    return f"group by ({', '.join(labels)}) ({expression})"


def reading(spellings: tuple[Spelling, ...], matchers: str = "") -> str:
    """The union of all spellings in one unit, with implausible samples and NaN dropped."""
    parts = []
    for spelling in spellings:
        selector = f"{spelling.metric}{{{matchers}}}" if matchers else spelling.metric
        kept = f"({selector} <= {spelling.plausible_max:.15g})"
        parts.append(kept if spelling.factor == 1 else f"{kept} * {spelling.factor:.15g}")
    return "\n  or ".join(parts)


def implausible(*quantities: tuple[Spelling, ...]) -> str:
    """Samples that `reading` drops for their size: one per device, whichever quantity it is."""
    spellings = [spelling for quantity in quantities for spelling in quantity]
    return "\n  or ".join(f"({each.metric} > {each.plausible_max:.15g})" for each in spellings)


def per_device(expression: str, extra: str = "") -> str:
    """One series per device (and per `extra` label): copies by pod, replica or MIG instance collapse to the largest."""
    labels = f"{IDENTITY}, {extra}" if extra else IDENTITY
    return f"max by ({labels}) (\n  {with_identity(f'({expression})')}\n)"
