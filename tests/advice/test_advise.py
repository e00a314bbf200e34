"""Rules run apart, are ranked together, and each has its page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings

import gpuwatch.advice.advise as module
from gpuwatch.advice.advise import advise
from gpuwatch.advice.commands import mark, move, stop
from gpuwatch.advice.pricing import severity
from gpuwatch.advice.rule import RULES, Outcome
from gpuwatch.counting.waterfall import waterfalls
from gpuwatch.fit.booking import book
from gpuwatch.model.settings import AnalysisSettings
from tests.advice.cases import OLD, advice, context_of
from tests.builders import a_gpu, a_job, a_node, a_snapshot, busy, idle
from tests.counting.snapshots import snapshots

DOCS = Path(__file__).parents[2] / "docs"


def quiet_node(name: str, count: int):
    return a_node(name, gpus=[a_gpu(i, uuid=f"GPU-{name}-{i}", activity=idle()) for i in range(count)])


def test_ranked_by_severity_then_gpu_hours():
    jobs = [a_job("small", "n1", [0], started_at=OLD), a_job("large", "n2", list(range(8)), started_at=OLD)]
    jobs.append(a_job("middle", "n1", [1, 2], started_at=OLD))
    found, _ = advice(quiet_node("n1", 3), quiet_node("n2", 8), jobs=jobs)
    assert [r.subject.name for r in found] == ["ml/large", "ml/middle", "ml/small"]


class _Broken:
    def run(self, context) -> Outcome:
        raise KeyError("boom")


def test_a_rule_that_breaks_leaves_the_others_standing(monkeypatch):
    class _Both:
        @staticmethod
        def items():
            return [("a_broken", _Broken()), *RULES.items()]

    monkeypatch.setattr(module, "RULES", _Both)
    found, passed = advice(quiet_node("n1", 1), jobs=[a_job("j", "n1", [0], started_at=OLD)])
    assert [r.rule for r in found] == ["idle_held"]
    assert ("a_broken", "*", "rule_failed") in {(a.rule, a.subject, a.reason) for a in passed}


@settings(max_examples=150)
@given(snapshots())
def test_odd_clusters_never_break_a_rule(snapshot):
    found, passed = advise(context_of(snapshot))
    assert not [a for a in passed if a.reason == "rule_failed"]
    assert len({r.id for r in found}) == len(found)
    for one in found:
        assert 0 <= one.confidence.value <= 1
        assert one.recoverable.gpus >= 0
        assert one.summary
        assert all(command.run and command.undo for command in one.commands)
        assert (one.recoverable.cost is None) == ("cost" in one.recoverable.missing)
        assert (one.recoverable.kwh is None) == ("kwh" in one.recoverable.missing)


@pytest.mark.parametrize(
    ("hours", "unlocks", "lower", "want"),
    [
        (167, 0, 0, "info"),
        (168, 0, 0, "warning"),
        (1344, 0, 0, "critical"),
        (168, 1, 0, "critical"),
        (9999, 5, 0, "critical"),
        (1344, 0, 1, "warning"),
        (0, 0, 3, "info"),
    ],
)
def test_severity_steps(hours, unlocks, lower, want):
    assert severity(hours, unlocks=unlocks, lower=lower) == want


@pytest.mark.parametrize("rule", RULES.ids())
def test_every_rule_has_its_page_and_names_real_settings(rule):
    known = AnalysisSettings.__dataclass_fields__
    assert set(RULES.get(rule).reads) <= set(known)
    page = (DOCS / "rules" / f"{rule}.md").read_text(encoding="utf-8")
    for name in RULES.get(rule).reads:
        assert f"`{name}`" in page, f"docs/rules/{rule}.md does not tell of {name}"
    assert page.startswith(f"# {rule}\n")


def test_bare_pods_are_saved_before_they_are_removed():
    (line,) = stop(a_job("j", "n1", [0]), replicas=1)
    assert "get pod j-0 -o json" in line.run
    assert line.undo == "kubectl -n ml apply -f j-0.json"


def test_one_of_several_replicas_is_marked_then_one_fewer_is_asked_for():
    lines = stop(a_job("j", "n1", [0], owner="ReplicaSet/api-7d9c5b8f6d"), replicas=3)
    assert "pod-deletion-cost=-1000" in lines[0].run
    assert lines[1].run == "kubectl -n ml scale deployment api --current-replicas=3 --replicas=2"
    assert lines[1].undo == "kubectl -n ml scale deployment api --replicas=3"


def test_no_line_when_the_owner_cannot_end_just_this_one():
    assert stop(a_job("j", "n1", [0], owner="StatefulSet/db"), replicas=3) == ()


@pytest.mark.parametrize(
    ("owner", "head"),
    [
        ("StatefulSet/db", "kubectl -n ml scale statefulset db --current-replicas=1 --replicas=0"),
        ("Job/train", "kubectl -n ml patch job train "),
        ("PyTorchJob/big", "kubectl -n ml get pytorchjob big -o yaml > big.yaml && "),
    ],
)
def test_owners_are_stopped_their_own_way(owner, head):
    (line,) = stop(a_job("j", "n1", [0], owner=owner), replicas=1)
    assert line.run.startswith(head)


def test_slurm_jobs_get_slurm_lines():
    job = a_job("x", "n1", [0])
    slurm = type(job)(**{f: getattr(job, f) for f in job.__dataclass_fields__} | {"id": "4711"})
    assert stop(slurm, 1)[0].run == "scontrol requeuehold 4711"
    assert [line.run for line in move(slurm, "n2")] == [
        "scontrol requeuehold 4711",
        "scontrol update JobId=4711 ExcNodeList=n1",
        "scontrol release 4711",
    ]
    assert mark(slurm, "idle", "a b")[0].run == "scontrol update JobId=4711 AdminComment='gpuwatch idle: a b'"


def test_names_from_data_cannot_break_out_of_a_line():
    evil = a_job("x; rm -rf /", "n1", [0], owner="Deployment/$(reboot)")
    for line in (*stop(evil, 1), *mark(evil, "idle", "$(reboot)"), *move(evil, "n2")):
        for text in (line.run, line.undo):
            bare = re.sub(r"'[^']*'", "", text)
            assert "rm -rf" not in bare
            assert "$(" not in bare


def test_the_advice_of_one_evaluation_is_repeatable():
    snapshot = a_snapshot(quiet_node("n1", 2), jobs=[a_job("j", "n1", [0, 1], started_at=OLD)])
    assert advise(context_of(snapshot)) == advise(context_of(snapshot))


@settings(max_examples=200)
@given(snapshots())
def test_no_device_is_promised_back_twice(snapshot):
    """Over-held and twice-claimed devices too: all that is to be given back was allocated once."""
    found, _ = advise(context_of(snapshot, tier_mean_ratio=1.0))
    allocated = waterfalls(book(snapshot), snapshot.taken_at, AnalysisSettings())[0].allocated_milligpu
    devices = sum(len(node.gpus) for node in snapshot.nodes)
    given_back = sum(r.recoverable.gpus for r in found if r.rule in ("idle_held", "tier_mismatch"))
    assert given_back * 1000 <= allocated + 2 * devices * 4  # each number is rounded


def test_two_jobs_on_one_whole_device_share_what_is_promised():
    jobs = [a_job(name, "n1", [0], started_at=OLD) for name in ("a", "b")]
    found, _ = advice(quiet_node("n1", 1), jobs=jobs)
    assert [(r.rule, r.recoverable.gpus) for r in found] == [("idle_held", 0.5)] * 2


def test_a_partly_idle_job_on_a_high_card_is_advised_once():
    works = busy(peak=0.3, mean=0.05, peak_memory_used_bytes=2**30)
    rests = idle(peak_memory_used_bytes=2**30)
    high = a_node("n1", gpus=[a_gpu(0, "H200-141", activity=works), a_gpu(1, "H200-141", activity=rests, uuid="GPU-b")])
    low = a_node("n2", gpus=2, model="A100-40")
    found, passed = advice(high, low, jobs=[a_job("j", "n1", [0, 1], started_at=OLD)])
    assert [(r.rule, r.recoverable.gpus) for r in found] == [("idle_held", 1.0)]
    assert ("tier_mismatch", "partly_idle") in {(a.rule, a.reason) for a in passed}
