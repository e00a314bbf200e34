"""Rebalance plans read back, strictly, from the JSON document that `gpuwatch rebalance -o json` writes."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from gpuwatch.errors import InputError, MissingExtraError
from gpuwatch.model.plan import PLAN_SCHEMA, RebalancePlan

_WRITE = "write one with: gpuwatch rebalance -o json --output-file plan.json"
_MOST_FAULTS = 5


@cache
def _adapter() -> Any:
    try:
        from pydantic import TypeAdapter
    except ModuleNotFoundError as err:
        raise MissingExtraError(
            "reading plans needs pydantic", todo="pip install 'gpuwatch-stack[cli]' (or [analytics])"
        ) from err
    return TypeAdapter(RebalancePlan)


def load_plan(text: str, origin: str = "plan") -> RebalancePlan:
    """The plan in the document `text`; InputError names origin, path and fault when it is none."""
    adapter = _adapter()
    from pydantic import ValidationError

    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as err:
        raise InputError(f"{origin} is not JSON ({err})", todo=_WRITE) from err
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != PLAN_SCHEMA:
        raise InputError(f"{origin} is not a {PLAN_SCHEMA} document (schema is {schema!r})", todo=_WRITE)
    # In the document, as in every other, steps are the items and what was left alone is skipped.
    told = {**document, "steps": document.get("items"), "refused": _refused(document.get("skipped"))}
    known = {each.name for each in fields(RebalancePlan)}
    unknown = set(document) - known - {"schema", "snapshot_taken_at", "items", "skipped"}
    if unknown:
        raise InputError(f"{origin} has fields that no plan has: {', '.join(sorted(unknown))}", todo=_WRITE)
    try:
        plan: RebalancePlan = adapter.validate_json(json.dumps({k: v for k, v in told.items() if k in known}))
    except ValidationError as err:
        found = [
            f"  $.{'.'.join(map(str, each['loc']))}: {each['msg']}"
            for each in err.errors(include_url=False, include_input=False)
        ]
        shown = "\n".join([f"{origin} has {len(found)} fault(s)", *found[:_MOST_FAULTS]])
        raise InputError(shown, todo=_WRITE) from err
    _check(plan, origin)
    return plan


def read_plan(path: Path) -> RebalancePlan:
    """load_plan of a file; a file that cannot be read is an InputError too."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as err:
        raise InputError(f"cannot read {path}: {err}", todo="check the path and its permissions") from err
    return load_plan(text, origin=str(path))


def _refused(skipped: Any) -> Any:
    """Broken stages of the evaluation are listed beside what the plan left alone; they are not the plan's."""
    return [each for each in skipped if "stage" not in each] if isinstance(skipped, list) else skipped


def _check(plan: RebalancePlan, origin: str) -> None:
    """What a step names must be known from before, or it could not be checked nor taken back."""
    jobs = {each.job for each in plan.jobs_before}
    nodes = {each.name for each in plan.nodes_before}
    if [step.order for step in plan.steps] != list(range(1, len(plan.steps) + 1)):
        raise InputError(f"{origin}: its steps are not numbered from 1 in their order", todo=_WRITE)
    if len({step.job for step in plan.steps}) != len(plan.steps):
        raise InputError(f"{origin}: a job has two steps", todo=_WRITE)
    for step in plan.steps:
        unknown = [step.job] if step.job not in jobs else []
        unknown += [name for name in (step.source, step.target) if name is not None and name not in nodes]
        if unknown:
            raise InputError(
                f"{origin}: step {step.order} names {unknown[0]!r}, whose state before is missing", todo=_WRITE
            )
    for node in plan.nodes_before:
        if not len(node.gpu_indexes) == len(node.gpu_models) == len(node.free_milligpu):
            raise InputError(f"{origin}: the device lists of node {node.name!r} differ in length", todo=_WRITE)
