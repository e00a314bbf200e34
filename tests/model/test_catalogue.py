"""The catalogue matches what exporters and node labels print, and nothing that only looks like it."""

import pytest

from gpuwatch.model.catalogue import card, cards, match, normalize

SPELLINGS = {
    "P100": ["Tesla P100-PCIE-16GB", "Tesla P100-SXM2-16GB", "P100"],
    "T4": ["Tesla T4", "Tesla-T4", "T4", "NVIDIA T4"],
    "V100-16": ["Tesla V100-SXM2-16GB", "Tesla-V100-PCIE-16GB", "V100M16"],
    "V100-32": ["Tesla V100-SXM2-32GB", "V100M32", "Tesla V100-PCIE-32GB"],
    "A10": ["NVIDIA A10", "NVIDIA-A10"],
    "A100-40": ["NVIDIA A100-SXM4-40GB", "A100-PCIE-40GB", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"],
    "A100-80": ["NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe", "NVIDIA-A100-SXM4-80GB-SHARED"],
    "L40S": ["NVIDIA L40S", "NVIDIA-L40S"],
    "H20": ["NVIDIA H20"],
    "H100-80": ["NVIDIA H100 80GB HBM3", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "NVIDIA H100 PCIe", "h100"],
    "H100-NVL-94": ["NVIDIA H100 NVL", "NVIDIA-H100-NVL"],
    "H200-141": ["NVIDIA H200", "NVIDIA-H200"],
    "B200": ["NVIDIA B200", "NVIDIA-B200"],
    "GB200": ["NVIDIA GB200"],
    "B300": ["NVIDIA B300 SXM6 AC"],
}


@pytest.mark.parametrize(("id_", "product"), [(i, p) for i, products in SPELLINGS.items() for p in products])
def test_product_strings(id_: str, product: str) -> None:
    found = match(product)
    assert found is not None
    assert found.id == id_


def test_every_card_has_a_spelling() -> None:
    assert set(SPELLINGS) == set(cards())


@pytest.mark.parametrize(
    "product",
    ["", "NVIDIA GH200 480GB", "NVIDIA A10G", "NVIDIA H20-3e", "Tesla P100-PCIE-12GB", "AMD Instinct MI300X", "NULL",
     "NVIDIA H100 80GB HBM3 clone", "NVIDIA A100X", "G2"],
)  # fmt: skip
def test_lookalikes_match_nothing(product: str) -> None:
    assert match(product) is None


def test_memory_decides_between_sizes_of_one_name() -> None:
    assert match("a100") is None
    assert match("a100", 40536) is card("A100-40")
    assert match("a100", 81251) is card("A100-80")
    assert match("V100", 32510) is card("V100-32")


def test_memory_that_contradicts_the_name_matches_nothing() -> None:
    assert match("NVIDIA H100 80GB HBM3", 40960) is None


def test_normalize() -> None:
    assert normalize("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb") == "H100 80GB HBM3"


def test_mig_geometry() -> None:
    h200 = card("H200-141")
    assert h200 is not None
    by_name = {p.name: p for p in h200.mig_profiles}
    assert by_name["1g.18gb"].placements == (0, 1, 2, 3, 4, 5, 6)
    assert by_name["3g.71gb"].memory_slices == 4
    assert by_name["7g.141gb"].compute_slices == 7
    l40s = card("L40S")
    assert l40s is not None
    assert l40s.mig_profiles == ()


def test_figures_are_plausible() -> None:
    for found in cards().values():
        assert 16_000 <= found.memory_total_mib <= 300_000 or found.id == "T4"
        assert 70 <= found.board_power_watts <= 1400
        assert 1 <= found.placement_tier <= 7
        assert (found.nvlink_version is None) == (found.nvlink_bytes_per_second is None)
