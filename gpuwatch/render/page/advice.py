"""The page's ranked advice."""

from __future__ import annotations

from collections import Counter

from gpuwatch.model.evaluation import Evaluation, Evidence, Recommendation, Scalar
from gpuwatch.render.page.html import Content, Markup, table, tag
from gpuwatch.render.plain import time_text

_MOST = 50
_OPEN = 10  # the rest is one click away, so that what stands below is still found


def advice_section(evaluation: Evaluation) -> Markup:
    """The recommendations in their rank, each with price, commands, evidence; and what was not judged."""
    items = evaluation.recommendations
    shown = [_one(each) for each in items[:_MOST]]
    inner: list[Content] = [*shown[:_OPEN]]
    if len(shown) > _OPEN:
        inner.append(tag("details", [tag("summary", f"{len(shown) - _OPEN} more"), *shown[_OPEN:]], class_="more"))
    if not items:
        inner.append(tag("p", "No rule has anything to advise.", class_="soft"))
    if len(items) > _MOST:
        inner.append(tag("p", f"and {len(items) - _MOST} more: /api/v1/recommendations", class_="soft"))
    if evaluation.abstentions:
        reasons = Counter((each.rule, each.reason) for each in evaluation.abstentions)
        rows = [(rule, reason, count) for (rule, reason), count in sorted(reasons.items())]
        many = f"{len(evaluation.abstentions)} subjects were not judged"
        judged = table(("rule", "reason", "subjects"), rows, numbers_from=2)
        inner.append(tag("details", [tag("summary", many), judged]))
    return tag("section", [tag("h2", f"Recommendations ({len(items)})"), *inner], id="advice")


def _one(each: Recommendation) -> Markup:
    price = each.recoverable
    told = [
        f"{price.gpus:.4g} GPU{'' if price.gpus == 1 else 's'}",
        f"{price.gpu_hours_per_week:,.0f} GPU-hours a week",
    ]
    if price.cost is not None:
        told.append(f"{price.cost:,.0f} {price.currency or ''} a week".replace("  ", " "))
    if price.kwh is not None:
        told.append(f"{price.kwh:,.0f} kWh a week")
    told.append(f"confidence {each.confidence.value:.0%}")
    head = [
        tag("span", each.severity, class_=f"chip {each.severity}"),
        tag("span", [tag("b", each.rule), " ", each.summary], class_="sum"),
        tag("span", " · ".join(told), class_="price"),
    ]
    return tag("article", [tag("div", head, class_="top"), _details(each)], class_="advice")


def _details(each: Recommendation) -> Markup:
    inner: list[Content] = [tag("summary", "commands, risk and evidence")]
    for command in each.commands:
        inner.append(tag("pre", [command.run, Markup("\n"), f"# undo: {command.undo}"]))
        if command.note:
            inner.append(tag("p", command.note, class_="soft"))
    inner.append(tag("p", [tag("b", "Risk: "), each.risk.disruption, *_lost(each)]))
    inner.append(tag("p", [tag("b", "Confidence: "), each.confidence.basis]))
    if each.unlocks:
        inner.append(tag("p", [tag("b", "Would let start: "), ", ".join(each.unlocks)]))
    for what, why in each.recoverable.missing.items():
        inner.append(tag("p", f"{what} is not known: {why}", class_="soft"))
    if each.evidence:
        rows = [(tag("code", proof.query), _measured(proof), _window(proof)) for proof in each.evidence]
        inner.append(table(("evidence", "value", "window"), rows))
    if each.facts:
        inner.append(table(("fact", "value"), [(name, _fact(fact)) for name, fact in each.facts.items()]))
    if each.first_seen_at:
        inner.append(tag("p", f"First advised {time_text(each.first_seen_at)} · id {each.id}", class_="soft"))
    return tag("details", inner)


def _lost(each: Recommendation) -> list[str]:
    lost = each.risk.work_lost_seconds
    return [f" · up to {lost / 3600:.1f} h of work lost"] if lost else []


def _fact(fact: Scalar) -> str:
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    return "unknown" if fact is None else f"{fact:.6g}" if isinstance(fact, float) else str(fact)


def _measured(proof: Evidence) -> str:
    return f"unknown: {proof.reason}" if proof.value is None else f"{proof.value:.4g} {proof.unit}"


def _window(proof: Evidence) -> str:
    return "now" if proof.window_seconds is None else f"{proof.window_seconds / 60:.0f} min"
