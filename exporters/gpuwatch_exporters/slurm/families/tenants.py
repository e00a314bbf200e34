"""Who uses and wants GPUs: accounts, and users where asked for."""

from __future__ import annotations

from gpuwatch_exporters.slurm.family import gauge

ACCOUNT_JOBS = gauge("account_jobs", "Jobs of the account that wait or hold nodes.", "account", "state")
ACCOUNT_GPUS = gauge("account_gpus_allocated", "GPUs that the account's jobs hold.", "account", "gpu_type")
ACCOUNT_ASKED = gauge("account_gpus_pending", "GPUs that the account's waiting jobs ask for.", "account", "gpu_type")
USER_JOBS = gauge("user_jobs", "Jobs of the user that wait or hold nodes (only with --per-user).", "user", "state")
USER_GPUS = gauge("user_gpus_allocated", "GPUs that the user's jobs hold (only with --per-user).", "user", "gpu_type")
USER_ASKED = gauge(
    "user_gpus_pending", "GPUs that the user's waiting jobs ask for (only with --per-user).", "user", "gpu_type"
)
