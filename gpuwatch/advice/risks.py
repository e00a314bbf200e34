"""What following the advice may cost the job: work since its last checkpoint, or a stated assumption."""

from __future__ import annotations

from collections.abc import Iterable

from gpuwatch.advice.context import AdviceContext
from gpuwatch.counting.idleness import age_seconds
from gpuwatch.model.evaluation import Risk
from gpuwatch.model.jobs import Job


def stop_risk(job: Job, context: AdviceContext, disruption: str) -> Risk:
    """The risk of ending the job once. A checkpoint in the future is no checkpoint."""
    saved = age_seconds(job.last_checkpoint_at, context.snapshot.taken_at)
    if saved is not None and saved >= 0:
        return Risk(
            disruption=disruption,
            work_lost_seconds=round(saved),
            checkpoint_age_seconds=round(saved),
            basis="time since its last checkpoint",
        )
    assumed = context.settings.checkpoint_unknown_lost_seconds
    age = age_seconds(job.started_at, context.snapshot.taken_at)
    if age is not None and 0 <= age < assumed:
        return Risk(disruption=disruption, work_lost_seconds=round(age), basis="no checkpoint known: all of its run")
    return Risk(disruption=disruption, work_lost_seconds=assumed, basis="no checkpoint known: assumed by the settings")


def together(risks: Iterable[Risk], disruption: str) -> Risk:
    """The risk of several jobs ended once each: their lost work adds up."""
    found = list(risks)
    return Risk(
        disruption=disruption,
        work_lost_seconds=sum(risk.work_lost_seconds or 0 for risk in found),
        basis="; ".join(sorted({risk.basis for risk in found if risk.basis})),
    )
