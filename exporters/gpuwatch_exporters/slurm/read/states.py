"""What the words of a node's and a job's state come to."""

from __future__ import annotations

from collections.abc import Iterable

from gpuwatch_exporters.slurm.read.unknown import Unknown

# The condition of a node is the first line that fits. A node that is down stays so whatever else is said of it.
_BY_BASE = {"down": "down", "error": "down", "future": "future", "unknown": "unknown", "invalid": "unknown"}
_BY_FLAG = (
    ("invalid_reg", "down"),
    ("fail", "failing"),
    ("drain", "draining"),  # "drained" once nothing runs there any more
    ("not_responding", "not_responding"),
    ("powered_down", "powered_down"),
    ("powering_down", "powered_down"),
    ("power_down", "powered_down"),
    ("power_drain", "powered_down"),
    ("powering_up", "powering_up"),
    ("power_up", "powering_up"),
    ("reboot_issued", "rebooting"),
    ("maintenance", "maintenance"),
    ("maint", "maintenance"),
    ("blocked", "held_back"),
    ("reserved", "reserved"),
    ("planned", "planned"),
)
_BASES = ("idle", "mixed", "allocated")
TAKES_WORK = ("idle", "mixed", "allocated", "planned")
CONDITIONS = (
    *_BASES, "planned", "reserved", "held_back", "maintenance", "rebooting", "powering_up", "powered_down",
    "not_responding", "draining", "drained", "failing", "down", "future", "unknown",
)  # fmt: skip
_QUIET_FLAGS = {
    "cloud", "completing", "dynamic_future", "dynamic_norm", "external", "net", "perfctrs", "reboot_canceled",
    "reboot_requested", "res", "resume", "undrain", "update",
}  # fmt: skip
_SPELLED = {"alloc": "allocated", "mix": "mixed", "no_respond": "not_responding", "drained": "drain", "fails": "fail"}

ENDED = (
    "boot_fail", "cancelled", "completed", "deadline", "failed", "node_fail", "out_of_memory", "preempted", "revoked",
    "timeout", "launch_failed",
)  # fmt: skip
# Its GPUs are taken: from the start of the node's preparation to the end of the epilog.
HOLDS = ("running", "suspended", "completing", "configuring", "resizing", "signaling", "stage_out", "stopped")
_WAITS = ("pending", "requeued", "requeue_fed", "requeue_hold", "resv_del_hold", "special_exit")
_QUIET_JOB_FLAGS = ("power_up_node", "reconfig_fail", "update_db", "expediting", "launching")


def node_state(told: Iterable[str], unknown: Unknown) -> tuple[str, str, tuple[str, ...]]:
    """(base, condition, flags) of a node from all words of its state, in lower case."""
    met = [_SPELLED.get(word.rstrip("*~#!%$@^-"), word.rstrip("*~#!%$@^-")) for word in told]
    known = {flag for flag, _ in _BY_FLAG}
    base = next((word for word in met if word in _BASES or word in _BY_BASE), "unknown")
    flags = tuple(sorted({word for word in met if word in known or word in _QUIET_FLAGS}))
    for word in met:
        if word not in _BASES and word not in _BY_BASE and word not in flags:
            unknown.add("node_state", word)
    if not met:
        unknown.add("node_state", "no state")
    return base, _condition(base, flags), flags


def _condition(base: str, flags: tuple[str, ...]) -> str:
    if base in _BY_BASE:
        return _BY_BASE[base]
    found = next((condition for flag, condition in _BY_FLAG if flag in flags), base)
    if found == "draining" and base == "idle" and "completing" not in flags:
        return "drained"
    return found


def job_state(told: Iterable[str], unknown: Unknown) -> str:
    """One word for a job: completing wins over what it ended as, for its GPUs are still taken; else the base state."""
    met = list(told)
    for word in met:
        if word not in (*ENDED, *HOLDS, *_WAITS, *_QUIET_JOB_FLAGS):
            unknown.add("job_state", word)
    if "completing" in met:
        return "completing"
    if any(word in _WAITS for word in met):
        return "pending"
    return next((word for word in met if word in HOLDS or word in ENDED), "unknown")
