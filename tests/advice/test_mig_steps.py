"""The lines of a MIG plan: in an order that works, each with an undo, every name quoted."""

from __future__ import annotations

import random
import shlex
import subprocess
from dataclasses import replace

import pytest

from gpuwatch.advice.mig_steps import device_steps, steps
from gpuwatch.fit.booking import book
from gpuwatch.fit.mig import geometry_of
from gpuwatch.model.mig import DeviceLayout, MigSpot
from tests.advice.nvidia_smi import Machine
from tests.builders import a_gpu, a_job, a_node, a_snapshot
from tests.placement.mig.clusters import NAMES, a_cut, an_instance, on, planned, random_cut

LGI = """\
+---------------------------------------------------------+
| GPU instances:                                          |
| GPU   Name               Profile  Instance   Placement  |
|                            ID       ID       Start:Size |
|=========================================================|
|   0  MIG 1g.10gb           19        9          2:1     |
+---------------------------------------------------------+
|   0  MIG 3g.40gb            9        2          4:4     |
+---------------------------------------------------------+
"""


def runs(lines) -> list[str]:
    return [line.run for line in lines]


def a_plan(**limits):
    gpu = a_cut(0, an_instance(3, "1g.10gb", 0), an_instance(4, "3g.40gb", 4))
    snapshot = a_snapshot(a_node("n1", [gpu, a_gpu(1, uuid="GPU-1")]), jobs=[on("n1", gpu, "4")])
    return snapshot, planned(snapshot, {"4g.40gb": 1, "7g.80gb": 1}, **limits)


def test_in_order_close_enable_delete_create_verify_open():
    snapshot, plan = a_plan()
    lines = steps(plan.devices, snapshot.jobs)
    assert runs(lines) == [
        "kubectl cordon n1",
        "nvidia-smi mig -i GPU-00000000 -dci -gi 3 && nvidia-smi mig -i GPU-00000000 -dgi -gi 3",
        "nvidia-smi mig -i GPU-00000000 -cgi 4g.40gb:0 -C",
        "nvidia-smi mig -i GPU-00000000 -lgi",
        "nvidia-smi -i GPU-1 -mig 1",
        "nvidia-smi mig -i GPU-1 -cgi 7g.80gb:0 -C",
        "nvidia-smi mig -i GPU-1 -lgi",
        "kubectl uncordon n1",
    ]
    assert [line.undo for line in lines][1] == "nvidia-smi mig -i GPU-00000000 -cgi 1g.10gb:0 -C"
    assert lines[4].undo == "nvidia-smi -i GPU-1 -mig 0"
    assert lines[3].note == "on n1, GPU 0: shows 4g.40gb at 0:4, 3g.40gb at 4:4"
    assert all(line.undo and line.note for line in lines)


def test_jobs_that_hold_a_whole_device_are_drained_first():
    snapshot = a_snapshot(
        a_node("n1", 1), jobs=[a_job("serve", "n1", [0], kind="inference", owner="ReplicaSet/serve-7d9f8b6c5d")]
    )
    plan = planned(snapshot, {"7g.80gb": 1}, include_busy=True)
    lines = runs(steps(plan.devices, snapshot.jobs))
    assert lines[:2] == ["kubectl cordon n1", "kubectl -n ml delete pod serve-0"]
    assert "-mig 1" in lines[2]


def test_slurm_nodes_are_drained_through_slurm():
    _, plan = a_plan()
    lines = steps(plan.devices, slurm=True)
    assert lines[0].run == "scontrol update NodeName=n1 State=DRAIN Reason=mig-repartition"
    assert (lines[0].undo, lines[-1].run) == ("scontrol update NodeName=n1 State=RESUME",) * 2


def a_layout(**fields) -> DeviceLayout:
    spot = MigSpot(profile="3g.40gb", start=4, memory_slices=4)
    base = {
        "node": "n1",
        "pool": "p",
        "gpu_index": 2,
        "uuid": None,
        "gpu_model": "H100-80",
        "serves": {},
        "create": (spot,),
    }
    return DeviceLayout(**{**base, **fields})


def test_the_undo_of_a_creation_finds_the_ids_by_their_place():
    small = MigSpot(profile="1g.10gb", start=2, memory_slices=1)
    (create, _) = device_steps(a_layout(create=(small, *a_layout().create)))
    assert create.run == "nvidia-smi mig -i 2 -cgi 3g.40gb:4,1g.10gb:2 -C"
    find = create.undo.split("$(", 1)[1].split("); do")[0].split(" | ", 1)[1]
    found = subprocess.run(["bash", "-c", find], input=LGI, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["9", "2"]
    (create, _) = device_steps(a_layout())
    only = create.undo.split("$(", 1)[1].split("); do")[0].split(" | ", 1)[1]
    found = subprocess.run(["bash", "-c", only], input=LGI, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["2"]


def test_untold_starts_are_left_to_the_driver():
    create, verify = device_steps(a_layout(create=(MigSpot(profile="1g.10gb", start=None, memory_slices=1),) * 2))
    assert create.run == "nvidia-smi mig -i 2 -cgi 1g.10gb,1g.10gb -C"
    assert "not told" in create.note
    assert "untold start" in verify.note


def test_names_from_data_are_quoted():
    evil = "n1; rm -rf /"
    lines = steps(
        [
            a_layout(
                node=evil,
                uuid="GPU-0 -mig 0",
                delete=(MigSpot(profile="1g.10gb; x", start=0, memory_slices=1, id="3;x"),),
            )
        ]
    )
    assert shlex.split(lines[0].run) == ["kubectl", "cordon", evil]
    for line in lines:
        for text in (line.run, line.undo):
            assert "rm -rf" not in text.replace(shlex.quote(evil), "")
            assert "; x" not in text.replace("'1g.10gb; x:0'", "")
            assert "GPU-0 -mig" not in text


def test_a_device_that_only_serves_gets_no_line():
    gpu = a_cut(0, an_instance(3, "1g.10gb", 0))
    assert steps(planned(a_snapshot(a_node("n1", [gpu])), {"1g.10gb": 1}).devices) == ()


@pytest.mark.parametrize("seed", range(40))
def test_a_driver_takes_every_line_and_the_undos_in_reverse_give_the_old_layout_back(seed):
    rng = random.Random(seed)
    snapshot, _ = random_cut(rng, rng.randint(1, 4))
    gpus = [*snapshot.nodes[0].gpus, a_gpu(7, uuid="GPU-7")]
    snapshot = replace(snapshot, nodes=(replace(snapshot.nodes[0], gpus=tuple(gpus)),))
    kinds = rng.sample(list(NAMES), 3)
    plan = planned(snapshot, {NAMES[kind]: rng.randint(1, 4) for kind in kinds})
    booked = book(snapshot).nodes["n1"]
    machine = Machine()
    for at, gpu in enumerate(gpus):
        held = {hold.mig_instance or "" for hold in booked.holds[at]}
        machine.add(gpu.uuid or "", gpu, geometry_of(gpu), held)
    before = machine.layout()
    lines = steps(plan.devices)
    for line in lines:
        machine.run(line.run)
    after = machine.layout()
    for layout in plan.devices:
        told = sorted((spot.start, spot.profile) for spot in (*layout.keep, *layout.create))
        assert [(slot.start, slot.profile) for slot in after[layout.uuid][1]] == told
    for line in reversed(lines):
        machine.run(line.undo)
    assert machine.layout() == before
