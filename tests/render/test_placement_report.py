"""What `gpuwatch place` says to people."""

from __future__ import annotations

import pytest

from gpuwatch.model.placement import NO_SINGLE_CHANGE, Assignment, GpuMemoryNeed, PlacementAdvice, PlacementChoice
from gpuwatch.render.report import FORMATS, Style
from gpuwatch.render.reports.placement import placement_report


def member(node, *gpus, model="GB200"):
    return Assignment(node=node, pool="p", gpu_model=model if gpus else None, gpus=gpus)


def said(*assignments, **fields):
    choice = PlacementChoice(
        rank=1,
        assignments=assignments,
        fragmentation_before=None,
        fragmentation_after=None,
        stranded_delta_milligpu=0.0,
    )
    fields.setdefault("choices", (choice,) if assignments else ())
    advice = PlacementAdvice(evaluation_id="e", policy="fgd", feasible=bool(assignments), **fields)
    return FORMATS.get("table")(placement_report(advice, {"cluster": "c"}), Style())


@pytest.mark.parametrize(
    ("assignments", "where"),
    [
        ([member(f"r{i:02}", 0, 1, 2, 3) for i in range(17)], "1  r[00-16] (GB200) GPU 0-3 each "),
        ([member("n", i) for i in range(8)], "1  n (GB200) 8 members on GPU 0-7 "),
        ([member("n", 0, 2), member("m", 1, model=None)], "1  n (GB200) GPU 0,2; m (model unknown) GPU 1 "),
        ([member("c1"), member("c2")], "1  c[1-2] "),
        ([member("c1"), member("c1")], "1  c1 2 members "),
    ],
)
def test_a_choice_says_where_members_go_in_few_words(assignments, where):
    assert f"\n{where}" in said(*assignments)


def test_a_refusal_says_what_would_help_or_that_nothing_does():
    assert "Cheapest change that makes it fit: ask for less: fits on 1 node.\n" in said(
        nearest_fix="ask for less: fits on 1 node"
    )
    nothing = said(nearest_fix=NO_SINGLE_CHANGE)
    assert "No single change of the request makes it fit.\n" in nothing
    assert "Cheapest" not in nothing


def test_a_share_is_told_with_what_the_whole_device_must_have():
    whole = GpuMemoryNeed(gpus=1, gpu_memory_bytes=30 * 2**30)
    share = GpuMemoryNeed(gpus=1, gpu_memory_bytes=30 * 2**30, device_memory_bytes=60 * 2**30)
    assert "30 GiB for the job.\n\n" in said(member("n", 0), gpu_memory=whole)
    assert "GPU, which must have 60 GiB in all.\n" in said(member("n", 0), gpu_memory=share)
