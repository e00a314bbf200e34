"""Filters, order and sums of recommendations."""

from __future__ import annotations

import pytest

from gpuwatch.errors import SettingsError
from gpuwatch.model.evaluation import Confidence, Recoverable
from gpuwatch.render.select import GROUP_KEYS, SORT_KEYS, Wanted, at_or_above, grouped, keep, ranked
from tests.render.evaluations import a_hostile_recommendation, a_recommendation, an_unpriced_recommendation

IDLE, DRAIN, TIER = a_recommendation(), an_unpriced_recommendation(), a_hostile_recommendation()
ALL = (IDLE, DRAIN, TIER)


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [
        (Wanted(), ALL),
        (Wanted(rules=("idle_held", "mis_tiered")), (IDLE, TIER)),
        (Wanted(pools=("infer",)), (DRAIN,)),
        (Wanted(tenants=("ml",)), (IDLE,)),
        (Wanted(nodes=("n7",)), (DRAIN,)),
        (Wanted(gpu_models=("H100-80",)), (IDLE,)),
        (Wanted(min_severity="warning"), (IDLE, DRAIN)),
        (Wanted(pools=("train",), nodes=("n7",)), ()),
    ],
)
def test_filters_are_joined_by_and_their_values_by_or(wanted: Wanted, kept: tuple) -> None:
    assert keep(ALL, wanted) == kept


def test_the_default_order_is_the_engines() -> None:
    assert ranked(ALL, None) == ALL


def test_an_unknown_cost_comes_after_every_known_one() -> None:
    free = a_recommendation(recoverable=Recoverable(gpus=0, gpu_hours_per_week=0, cost=0.0, currency="USD"))
    assert ranked((DRAIN, free, IDLE), "cost") == (IDLE, free, DRAIN)


def test_value_is_gpu_hours_weighted_by_confidence() -> None:
    doubtful = a_recommendation(confidence=Confidence(value=0.1, basis="x"))
    assert ranked((doubtful, IDLE), "value") == (IDLE, doubtful)
    assert ranked(ALL, "severity") == (DRAIN, IDLE, TIER)


def test_groups_add_up_and_an_unknown_cost_stays_unknown() -> None:
    groups = {group.name: group for group in grouped(ALL, "pool")}
    assert groups["train"].recommendations == 2
    assert groups["train"].cost_per_week == 2016.0
    assert groups["train"].gpu_hours_per_week == 672.0
    assert groups["infer"].cost_per_week is None
    assert groups["infer"].worst_severity == "critical"
    for key in GROUP_KEYS:
        assert sum(group.recommendations for group in grouped(ALL, key)) == len(ALL)


def test_unknown_keys_list_the_known_ones() -> None:
    with pytest.raises(SettingsError) as err:
        ranked(ALL, "luck")
    assert ", ".join(SORT_KEYS) in err.value.todo
    with pytest.raises(SettingsError) as err:
        grouped(ALL, "luck")
    assert ", ".join(GROUP_KEYS) in err.value.todo


def test_counting_at_or_above_a_severity() -> None:
    assert [at_or_above(ALL, severity) for severity in ("info", "warning", "critical")] == [3, 2, 1]
