"""Runs every rule and ranks what they found. A rule that breaks is told as an abstention; the others stand."""

from __future__ import annotations

from gpuwatch.advice.context import AdviceContext
from gpuwatch.advice.rule import RULES, Outcome
from gpuwatch.errors import GpuwatchError
from gpuwatch.model.evaluation import Abstention, Recommendation

__all__ = ["RULE_FAILED", "AdviceContext", "advise"]

RULE_FAILED = "rule_failed"  # the reason of an abstention that speaks for a whole rule that broke
_RANK = {"critical": 0, "warning": 1, "info": 2}


def advise(context: AdviceContext) -> tuple[tuple[Recommendation, ...], tuple[Abstention, ...]]:
    """Recommendations by severity, then by recoverable GPU-hours times confidence; abstentions by rule and subject."""
    recommendations: list[Recommendation] = []
    abstentions: list[Abstention] = []
    for name, rule in RULES.items():
        try:
            outcome = rule.run(context)
        except Exception as err:  # one broken rule must not silence the others
            code = err.code if isinstance(err, GpuwatchError) else type(err).__name__
            broken = Abstention(rule=name, subject="*", reason=RULE_FAILED, detail=f"{code}: {err}")
            outcome = Outcome(abstentions=(broken,))
        recommendations += outcome.recommendations
        abstentions += outcome.abstentions
    return (
        tuple(sorted(recommendations, key=_order)),
        tuple(sorted(abstentions, key=lambda a: (a.rule, a.subject, a.reason))),
    )


def _order(found: Recommendation) -> tuple[int, float, str]:
    return _RANK[found.severity], -found.recoverable.gpu_hours_per_week * found.confidence.value, found.id
