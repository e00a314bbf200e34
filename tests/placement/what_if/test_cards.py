"""GPU memory, precision and generations in a what-if: who is accepted, who comes first, what is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuwatch.demand.mix import demand_mix
from gpuwatch.errors import InputError
from gpuwatch.fit.booking import book
from gpuwatch.model.placement import ModelSize, PlacementRequest
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.units import GIB
from gpuwatch.placement.what_if.answer import WhatIf
from tests.builders import a_gpu, a_job, a_node, a_shape, a_snapshot

BILLION = 10**9
EVERY = a_snapshot(
    *(
        a_node(model.lower(), 4, model=model)
        for model in ("A100-40", "A100-80", "H100-80", "H200-141", "B200", "H20", "L40S", "T4", "Mystery-9")
    )
)


def ask(snapshot, shape=None, **fields):
    request = PlacementRequest(shape=shape or a_shape(1), **fields)
    return WhatIf(book(snapshot), demand_mix(snapshot, AnalysisSettings())).answer(request, "e1")


def cards(advice):
    return [choice.assignments[0].gpu_model for choice in advice.choices]


@pytest.mark.parametrize(
    ("gib", "order"),
    [
        (130, ["B200", "H200-141"]),  # 139.6 GB: an H200 (150.8 GB) holds it, but it is no need of that class
        (110, ["H200-141", "B200"]),
        (70, ["H100-80", "A100-80", "H200-141", "B200", "H20"]),
        (44, ["H100-80", "L40S", "A100-80", "H200-141", "B200", "H20"]),
        (10, ["A100-40", "A100-80", "H100-80", "T4", "L40S", "H200-141", "B200", "H20"]),
        (150, ["B200"]),
    ],
)
def test_who_has_the_memory_is_accepted_and_the_class_made_for_it_comes_first(gib, order):
    advice = ask(EVERY, gpu_memory_bytes=gib * GIB, top=9)
    found = cards(advice)
    assert set(found) == set(order)
    first = len([card for card in order if card in advice.gpu_memory.preferred_models])
    assert set(found[:first]) == set(order[:first])
    assert found[first:] == order[first:]


def test_h20_takes_light_inference_first_and_anything_else_last():
    serving = ModelSize(parameters=13 * BILLION)
    assert cards(ask(EVERY, model=serving, top=9))[0] == "H20"
    assert cards(ask(EVERY, a_shape(2), model=serving, top=9))[-1] == "H20"
    training = ModelSize(parameters=BILLION, purpose="training")
    assert cards(ask(EVERY, model=training, top=9))[-1] == "H20"


def test_memory_that_nobody_knows_is_not_accepted_and_told():
    advice = ask(EVERY, gpu_memory_bytes=50 * GIB)
    assert advice.blockers == {"gpu_memory_lacking": 3, "gpu_memory_unknown": 1}
    assert advice.gpu_memory.excluded["Mystery-9"] == "its memory is unknown"
    assert advice.gpu_memory.excluded["L40S"] == "has 45 GiB, 50 GiB needed"


def test_measured_memory_decides_device_by_device():
    gpus = [a_gpu(i, memory_total_bytes=(40 if i < 2 else 94) * GIB) for i in range(4)]
    snapshot = a_snapshot(a_node("odd", gpus), a_node("usual", 4))
    advice = ask(snapshot, gpu_memory_bytes=90 * GIB)
    assert [spot.gpus for choice in advice.choices for spot in choice.assignments] == [(2,)]
    assert advice.blockers == {"gpu_memory_lacking": 1}
    assert ask(snapshot, a_shape(3), gpu_memory_bytes=90 * GIB).blockers == {"gpu_memory_lacking": 2}
    assert advice.gpu_memory.excluded == {}  # some H100-80 here will do


def test_a_share_has_its_share_of_the_memory():
    advice = ask(EVERY, a_shape(1, milligpu=500), gpu_memory_bytes=60 * GIB, top=9)
    assert cards(advice) == ["B200", "H200-141"]
    assert advice.gpu_memory.gpu_memory_bytes == 60 * GIB
    assert advice.gpu_memory.device_memory_bytes == 120 * GIB
    assert "B200" in advice.gpu_memory.preferred_models  # half of a card of 120 GiB


def test_a_precision_leaves_out_cards_and_says_which():
    advice = ask(EVERY, a_shape(4), model=ModelSize(parameters=70 * BILLION, precision="fp4"))
    assert cards(advice) == ["B200"]
    assert advice.blockers == {"precision_unsupported": 8}
    told = advice.gpu_memory.excluded
    assert told["H100-80"] == "of the hopper generation, which does not compute in fp4"
    assert told["Mystery-9"] == "not known to compute in fp4"


def test_the_number_of_gpus_follows_from_the_model():
    advice = ask(EVERY, model=ModelSize(parameters=180 * BILLION), choose_gpus=True)
    assert [(each.gpus, each.nodes) for each in advice.gpu_memory.options] == [(1, 0), (2, 0), (4, 2), (8, 0)]
    assert advice.gpu_memory.gpus == 4
    assert advice.gpu_memory.options[2].gpu_models == ("B200", "H200-141")
    assert all(len(choice.assignments[0].gpus) == 4 for choice in advice.choices)
    assert advice.gpu_memory.total_bytes == 432 * 10**9
    assert advice.gpu_memory.gpu_memory_bytes == 108 * 10**9
    # Where no number fits, the blockers speak of the fewest for which there are cards at all.
    busy = replace(EVERY, jobs=tuple(a_job(f"j{n.name}", n.name, [0, 1]) for n in EVERY.nodes))
    assert ask(busy, model=ModelSize(parameters=180 * BILLION), choose_gpus=True).gpu_memory.gpus == 4
    none = ask(EVERY, model=ModelSize(parameters=5000 * BILLION), choose_gpus=True)
    assert not none.feasible
    assert [each.gpu_models for each in none.gpu_memory.options] == [()] * 4


def test_members_share_a_model():
    alone = ask(EVERY, a_shape(4), model=ModelSize(parameters=70 * BILLION, purpose="training"))
    assert not alone.feasible
    advice = ask(EVERY, a_shape(4), members=3, model=ModelSize(parameters=70 * BILLION, purpose="training"))
    assert advice.gpu_memory.gpu_memory_bytes == 105 * 10**9
    assert not advice.feasible  # two nodes have such cards
    smaller = ask(EVERY, a_shape(4), members=3, model=ModelSize(parameters=50 * BILLION, purpose="training"))
    assert smaller.feasible


FIXES = {
    "narrower": (
        a_snapshot(a_node("h", 1, model="H200-141")),
        {"model": ModelSize(parameters=70 * BILLION)},
        "load the model in fp8 instead of fp16 (91.3 GiB per GPU): fits on 1 node",
    ),
    "more devices": (
        a_snapshot(a_node("a", 2, model="A100-80")),
        {"model": ModelSize(parameters=60 * BILLION)},
        "use 2 GPUs of 67.1 GiB instead of 1: fits on 1 node",
    ),
    "less memory": (
        a_snapshot(a_node("a", 2, model="A100-80")),
        {"gpu_memory_bytes": 81 * GIB},
        "ask for 80 GiB of GPU memory instead of 81: fits on 1 node",
    ),
    "another card": (
        a_snapshot(a_node("a", 2, model="A100-80"), a_node("b", 1, model="B200")),
        {"gpu_memory_bytes": 81 * GIB, "shape": a_shape(1, gpu_models=("A100-80",))},
        "accept B200 too: fits on 1 node",
    ),
}


@pytest.mark.parametrize(("snapshot", "fields", "told"), FIXES.values(), ids=FIXES)
def test_the_nearest_fix_knows_memory(snapshot, fields, told):
    assert ask(snapshot, **fields).nearest_fix == told


def test_hopper_and_blackwell_never_share_an_nvlink_gang_whatever_labels_say():
    nodes = [a_node(f"h{i}", 4, model="H200-141", nvlink_domain="rack") for i in range(2)]
    nodes += [a_node(f"b{i}", 4, model="GB200", nvlink_domain="rack") for i in range(2)]
    snapshot = a_snapshot(*nodes)
    two = ask(snapshot, a_shape(4), members=2, same_nvlink_domain=True)
    assert [sorted(spot.node for spot in each.assignments) for each in two.choices] == [["h0", "h1"], ["b0", "b1"]]
    assert all(each.mixed_generations == () for each in two.choices)
    three = ask(snapshot, a_shape(4), members=3, same_nvlink_domain=True)
    assert not three.feasible
    assert three.blockers == {"nvlink_generations": 4}
    assert three.nearest_fix == "do without one NVLink domain: fits on 4 nodes"
    free = ask(snapshot, a_shape(4), members=3)
    assert free.choices[0].mixed_generations == ("blackwell", "hopper")
    only = ask(snapshot, a_shape(4, gpu_models=("H200-141",)), members=3)
    assert not only.feasible


def test_one_member_on_a_mixed_node_takes_one_generation_under_nvlink():
    mixed = a_node("m", [a_gpu(i, model="H100-80" if i < 3 else "B200") for i in range(6)])
    snapshot = a_snapshot(mixed, jobs=[a_job("x", "m", [0])])
    joined = ask(snapshot, a_shape(3), same_nvlink_domain=True)
    assert [(spot.gpus, spot.gpu_model) for spot in joined.choices[0].assignments] == [((3, 4, 5), "B200")]
    loose = ask(snapshot, a_shape(3)).choices[0]
    assert (loose.assignments[0].gpus, loose.assignments[0].gpu_model) == ((1, 2, 3), None)
    assert loose.mixed_generations == ("blackwell", "hopper")
    assert not ask(snapshot, a_shape(4), same_nvlink_domain=True).feasible


def test_a_rack_of_72_is_one_domain():
    racks = [a_node(f"{rack}{i:02}", 4, model="GB200", nvlink_domain=rack) for rack in "ab" for i in range(18)]
    busy = [a_job(f"j{i}", f"a{i:02}", [0, 1, 2, 3]) for i in range(2)]
    snapshot = a_snapshot(*racks, jobs=busy)
    advice = ask(snapshot, a_shape(4), members=17, same_nvlink_domain=True)
    assert {spot.node[0] for spot in advice.choices[0].assignments} == {"b"}
    assert advice.blockers == {"nvlink_domain": 16, "gpu_lacking": 2}
    assert ask(snapshot, a_shape(4), members=18, same_nvlink_domain=True).feasible
    assert not ask(snapshot, a_shape(4), members=19, same_nvlink_domain=True).feasible
    assert ask(snapshot, a_shape(4), members=34).feasible


BAD = {
    "memory without a GPU": {"shape": a_shape(0), "gpu_memory_bytes": GIB},
    "memory of an instance": {"shape": a_shape(1, mig_profile="1g.10gb"), "gpu_memory_bytes": GIB},
    "no memory": {"gpu_memory_bytes": 0},
    "memory and a model": {"gpu_memory_bytes": GIB, "model": ModelSize(parameters=BILLION)},
    "no parameters": {"model": ModelSize(parameters=0)},
    "absurd parameters": {"model": ModelSize(parameters=10**30)},
    "open number without a model": {"choose_gpus": True},
    "open number of shares": {
        "shape": a_shape(1, milligpu=500),
        "choose_gpus": True,
        "model": ModelSize(parameters=BILLION),
    },
}


@pytest.mark.parametrize("fields", BAD.values(), ids=BAD)
def test_memory_without_sense_is_refused(fields):
    with pytest.raises(InputError, match="cannot be answered"):
        ask(EVERY, **fields)


def test_an_absurd_need_is_answered_at_once():
    advice = ask(EVERY, gpu_memory_bytes=10**30)
    assert not advice.feasible
    assert advice.nearest_fix.endswith("fits on 1 node")
