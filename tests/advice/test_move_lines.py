"""Lines for one move: nothing comes back to the place that it left, and nobody else's cordon is lifted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuwatch.advice.move_lines import lines
from gpuwatch.model.plan import PlanStep
from tests.builders import a_job, a_shape

JOB = a_job("j", "n0", [0], shape=a_shape(1, cpu=1000), owner="ReplicaSet/web-7d4b9c6f5d")
STEP = PlanStep(
    order=1,
    kind="move",
    job=JOB.id,
    member="j-0",
    shape=JOB.shape.label,
    milligpu_per_gpu=1000,
    source="n0",
    source_gpus=(0,),
    target="n1",
    target_gpus=(1,),
)


def runs(step: PlanStep = STEP, takes_work: bool = True, **fields) -> list[str]:
    return [line.run for line in lines(step, replace(JOB, **fields), takes_work)]


def test_the_source_is_closed_until_the_pod_runs_elsewhere():
    assert runs() == [
        "kubectl cordon n0",
        "kubectl -n ml delete pod j-0",
        "kubectl -n ml rollout status deployment/web && kubectl -n ml get pod -o wide",
        "kubectl uncordon n0",
    ]
    told = lines(STEP, JOB, True)
    assert "does not come back" in told[0].note
    assert "the scheduler chooses" in told[1].note
    assert all(line.undo for line in told)


@pytest.mark.parametrize(
    ("owner", "waits"),
    [
        (None, "kubectl -n ml wait --for=condition=Ready --timeout=10m pod/j-0 && kubectl -n ml get pod/j-0 -o wide"),
        ("Job/sweep", "kubectl -n ml get pod -o wide"),
    ],
)
def test_what_to_look_at_before_the_node_is_opened(owner, waits):
    told = runs(owner=owner)
    assert told[-2:] == [waits, "kubectl uncordon n0"]


def test_a_cordon_that_others_set_stays():
    told = runs(takes_work=False)
    assert told
    assert not any("cordon" in line for line in told)


def test_a_change_of_device_leaves_its_node_open():
    inside = replace(STEP, target="n0")
    assert not any("cordon" in line.run + line.undo for line in lines(inside, JOB, True))
    assert "device plugin chooses" in lines(inside, JOB, True)[0].note
    assert not any("ExcNodeList" in line for line in runs(inside, id="4711"))


def test_slurm_holds_then_names_the_target_then_lets_go():
    assert runs(id="4711") == [
        "scontrol requeuehold 4711",
        "scontrol update JobId=4711 ReqNodeList=n1",
        "scontrol release 4711",
    ]


def test_names_are_quoted():
    odd = replace(STEP, source="n0; reboot", target="n1; reboot")
    assert runs(odd)[0] == "kubectl cordon 'n0; reboot'"
    assert runs(odd, id="4711")[1] == "scontrol update JobId=4711 ReqNodeList='n1; reboot'"
