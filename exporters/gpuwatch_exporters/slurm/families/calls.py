"""How Slurm answered. Values of a call that failed are left out, never repeated."""

from __future__ import annotations

from gpuwatch_exporters.slurm.family import own_counter, own_gauge

UP = own_gauge("up", "1 when nodes and jobs were told at their last call.")
CALL_UP = own_gauge("call_up", "1 when the last call succeeded and its values are served.", "command")
CALLS = own_counter("calls_total", "Calls made.", "command")
FAILURES = own_counter("call_failures_total", "Calls that failed, by reason.", "command", "reason")
DURATION = own_gauge("call_duration_seconds", "How long the last call took.", "command")
SUCCESS = own_gauge(
    "call_last_success_timestamp_seconds", "Unix time of the last successful call: the age of its values.", "command"
)
WAITING = own_gauge("call_backoff_seconds", "Time that no call is made after failures; 0 without.", "command")
UNKNOWN = own_gauge("unknown", "Words and rows of the last answers that are not known here and were left out.", "kind")
SCHEMA = own_gauge("schema_info", "What answers, and in which schema; always 1.", "source", "schema", "slurm_version")
GPUS_TRACKED = own_gauge(
    "gpus_tracked", "1 where Slurm's accounting counts GPUs (AccountingStorageTRES names gres/gpu); 0: GPUs of jobs "
    "are taken from their allocation's detail, those of waiting jobs reckoned from their options.",
)  # fmt: skip
