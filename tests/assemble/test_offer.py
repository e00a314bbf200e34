"""Fewest devices that carry a node's slices, by the slices that its card has."""

from __future__ import annotations

import pytest

from gpuwatch.assemble.offer import cut_devices, profile_slices


@pytest.mark.parametrize(
    ("product", "profiles", "devices"),
    [
        ("NVIDIA-H100-80GB-HBM3", {"1g.10gb": 14}, 2),
        ("NVIDIA-H100-80GB-HBM3", {"1g.20gb": 8}, 2),  # two memory slices each
        ("NVIDIA-A30", {"1g.6gb": 12}, 3),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", {"2g.48gb": 3}, 2),
        (None, {"1g.5gb": 8}, 2),
        (None, {}, 0),
    ],
)
def test_fewest_devices(product, profiles, devices):
    assert cut_devices(profiles, product) == devices


def test_profiles_by_card_then_by_name():
    assert profile_slices("1g.20gb", "NVIDIA-H100-80GB-HBM3") == (1, 2)
    assert profile_slices("1g.10gb+me", "NVIDIA-H100-80GB-HBM3") == (1, 1)
    assert profile_slices("2g.48gb", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition") == (2, 6)
    assert profile_slices("3g.40gb", None) == (3, 4)
