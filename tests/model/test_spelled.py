"""Names as people write them."""

from __future__ import annotations

import pytest

from gpuwatch.model.spelled import card_ids, profile_name


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("H100-80", ("H100-80",)),
        (" h200-141 ", ("H200-141",)),
        ("NVIDIA-H100-80GB-HBM3", ("H100-80",)),
        ("a100", ("A100-40", "A100-80")),
        ("Mystery 9", ("Mystery 9",)),
    ],
)
def test_a_card_is_known_by_every_name_it_goes_by(name, ids):
    assert card_ids([name]) == ids
    assert card_ids([name, "T4", name]) == (*ids, "T4")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("1g.10gb", "1g.10gb"),
        (" MIG-1G.10GB+ME", "1g.10gb+me"),
        ("nvidia.com/mig-1g.10gb.me", "1g.10gb+me"),
        ("nvidia.com/mig-3g.40gb", "3g.40gb"),
        ("odd", "odd"),
    ],
)
def test_a_profile_is_known_by_the_resource_that_asks_for_it(text, name):
    assert profile_name(text) == name
