"""What a model needs, and which cards have it: against numbers worked out by hand."""

from __future__ import annotations

import pytest

from gpuwatch.fit.booking import book
from gpuwatch.fit.gpu_memory import GB, computes_in, device_memory, estimate, last_choice, made_for, preference
from gpuwatch.model.catalogue import cards
from gpuwatch.model.placement import PRECISIONS, ModelSize
from gpuwatch.model.units import GIB, MIB
from tests.builders import a_gpu, a_node, a_snapshot

BILLION = 10**9
H100S = ("H100-80", "H100-NVL-94")


@pytest.mark.parametrize(
    ("size", "total_gb", "parts_gb"),
    [
        (ModelSize(parameters=70 * BILLION), 168, {"weights": 140, "cache_and_activations": 28}),
        (ModelSize(parameters=70 * BILLION, precision="fp8"), 98, {"weights": 70, "cache_and_activations": 28}),
        (ModelSize(parameters=8 * BILLION, precision="fp4"), 7.7, {"weights": 4.5, "cache_and_activations": 3.2}),
        (
            ModelSize(parameters=7 * BILLION, precision="bf16", purpose="training"),
            126,
            {"weights": 14, "gradients": 14, "optimizer": 84, "activations": 14},
        ),
        (
            ModelSize(parameters=10 * BILLION, precision="fp8", purpose="training"),
            170,
            {"weights": 10, "gradients": 20, "optimizer": 120, "activations": 20},
        ),
    ],
)
def test_a_model_needs_bytes_per_parameter(size, total_gb, parts_gb):
    found = estimate(size)
    assert found.total_bytes == total_gb * GB == sum(found.parts.values())
    assert {name: amount / GB for name, amount in found.parts.items()} == parts_gb
    assert f"{total_gb * GB / size.parameters:g} bytes each" in found.formula
    assert found.assumptions


@pytest.mark.parametrize(
    ("need_gb", "light", "groups"),
    [
        (170, False, (("B200", "GB200", "B300", "GB300"),)),
        (120.001, False, (("B200", "GB200", "B300", "GB300"),)),
        (120, False, (("H200-141",),)),
        (80.001, False, (("H200-141",),)),
        (80, False, (H100S,)),
        (40, False, (("A100-40", "A100-80", *H100S),)),
        (1, True, (("H20",), ("A100-40", "A100-80", *H100S))),
        (80, True, (("H20",), H100S)),
        (81, True, (("H200-141",),)),
    ],
)
def test_a_need_goes_to_the_class_made_for_it(need_gb, light, groups):
    assert preference(round(need_gb * GB), light) == groups
    assert last_choice() == ("H20",)


def test_the_tiers_name_cards_of_the_catalogue_that_could_hold_their_least_need():
    for need in (1, 40 * GB + 1, 80 * GB + 1, 120 * GB + 1):
        for name in preference(need, True)[-1]:
            assert cards()[name].memory_total_mib * MIB >= need, name


def test_no_card_is_told_for_a_need_that_it_could_not_meet():
    assert made_for(150 * GB, False) == ("B200", "GB200", "B300", "GB300")
    assert made_for(250 * GB, False) == ("B300", "GB300")  # more than a B200 has
    assert made_for(400 * GB, False) == ()
    assert made_for(60 * GB, True, "fp8") == ("H20", *H100S)
    assert made_for(60 * GB, True, "fp4") == ()  # Hopper does not compute in it


def test_a_precision_is_for_generations_that_compute_in_it():
    known = {precision: [m for m in cards() if computes_in(m, precision)] for precision in PRECISIONS}
    assert set(known["fp16"]) == set(cards())
    assert {"A100-80", "L40S", "H100-80", "B200"} <= set(known["bf16"])
    assert not {"V100-32", "T4"} & set(known["bf16"])
    assert {cards()[name].generation for name in known["fp8"]} == {"ada-lovelace", "hopper", "blackwell"}
    assert {cards()[name].generation for name in known["fp4"]} == {"blackwell"}
    assert computes_in("Mystery 9", "fp16") is True
    assert computes_in("Mystery 9", "fp8") is None
    assert computes_in(None, "fp4") is None


def test_measured_memory_wins_over_the_catalogue_and_unknown_is_zero():
    gpus = [a_gpu(0), a_gpu(1, memory_total_bytes=93 * GIB), a_gpu(2, model="Mystery 9"), a_gpu(3, model=None)]
    nodes = a_node("a", gpus), a_node("b", [a_gpu(0, model="Mystery 9", memory_total_bytes=10**30)])
    memory = device_memory(book(a_snapshot(*nodes)), 5)
    assert memory[0].tolist() == [81_559 * MIB, 93 * GIB, 0, 0, 0]
    assert memory[1, 0] > 2**48
