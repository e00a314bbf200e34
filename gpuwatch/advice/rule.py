"""What a rule is: bounded settings with help, the data it needs, and a pure run. Registered one file each."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import ClassVar, Protocol

from gpuwatch.advice.context import AdviceContext
from gpuwatch.model.evaluation import Abstention, Recommendation, Subject
from gpuwatch.registry import Registry


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a rule found, and what it looked at and would not judge."""

    recommendations: tuple[Recommendation, ...] = ()
    abstentions: tuple[Abstention, ...] = ()


class Rule(Protocol):
    """One kind of advice. `reads`: the settings it uses, with help. `data`: what it needs, in the user's words."""

    id: str
    title: str
    reads: ClassVar[dict[str, str]]
    data: tuple[str, ...]

    def run(self, context: AdviceContext) -> Outcome:
        """Judges every subject of its kind. Too little data is an abstention, never a guess."""
        ...


RULES: Registry[Rule] = Registry("advice rule", "gpuwatch.advice.rules")


def recommendation_id(rule: str, subject: Subject) -> str:
    """12 hex digits, equal for the same rule and subject in every evaluation, so that advice can be followed up."""
    text = "\0".join((rule, subject.kind, subject.name))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
