"""The catalogue matches what exporters and node labels print, and nothing that only looks like it."""

import itertools
import re

import pytest

from gpuwatch.model.catalogue import Card, card, cards, match, mig_geometry, normalize

SPELLINGS = {
    "P100": ["Tesla P100-PCIE-16GB", "Tesla P100-SXM2-16GB", "P100"],
    "T4": ["Tesla T4", "Tesla-T4", "T4", "NVIDIA T4"],
    "V100-16": ["Tesla V100-SXM2-16GB", "Tesla-V100-PCIE-16GB", "V100M16"],
    "V100-32": ["Tesla V100-SXM2-32GB", "V100M32", "Tesla V100-PCIE-32GB"],
    "A10": ["NVIDIA A10", "NVIDIA-A10"],
    "A30": ["NVIDIA A30", "NVIDIA-A30-MIG-1g.6gb", "NVIDIA-A30-MIG-1g.6gb.me"],
    "A100-40": ["NVIDIA A100-SXM4-40GB", "A100-PCIE-40GB", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"],
    "A100-80": ["NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe", "NVIDIA-A100-SXM4-80GB-SHARED"],
    "L40S": ["NVIDIA L40S", "NVIDIA-L40S"],
    "RTX-PRO-6000": [
        "NVIDIA RTX PRO 6000 Blackwell Server Edition",
        "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition-MIG-2g.48gb",
        "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
    ],
    "H20": ["NVIDIA H20"],
    "H100-80": ["NVIDIA H100 80GB HBM3", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "NVIDIA H100 PCIe", "h100"],
    "H100-NVL-94": ["NVIDIA H100 NVL", "NVIDIA-H100-NVL"],
    "H200-141": ["NVIDIA H200", "NVIDIA-H200"],
    "B200": ["NVIDIA B200", "NVIDIA-B200"],
    "GB200": ["NVIDIA GB200"],
    "B300": ["NVIDIA B300 SXM6 AC"],
    "GB300": ["NVIDIA GB300"],
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


# The profile names that the maker prints for each card and memory size: 1g, doubled 1g, 2g, 3g, 4g, 7g.
PROFILES = {
    ("A100-40", 40): "1g.5gb 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb",
    ("A100-80", 80): "1g.10gb 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
    ("H100-80", 80): "1g.10gb 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
    ("H100-NVL-94", 94): "1g.12gb 1g.24gb 2g.24gb 3g.47gb 4g.47gb 7g.94gb",
    ("H20", 96): "1g.12gb 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb",
    ("H200-141", 141): "1g.18gb 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb",
    ("B200", 180): "1g.23gb 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb",
    ("B200", 192): "1g.24gb 1g.48gb 2g.48gb 3g.96gb 4g.96gb 7g.192gb",
    ("GB200", 186): "1g.23gb 1g.47gb 2g.47gb 3g.93gb 4g.93gb 7g.186gb",
    ("GB200", 189): "1g.24gb 1g.47gb 2g.47gb 3g.95gb 4g.95gb 7g.189gb",
    ("B300", 269): "1g.34gb 1g.67gb 2g.67gb 3g.135gb 4g.135gb 7g.269gb",
    ("GB300", 278): "1g.35gb 1g.70gb 2g.70gb 3g.139gb 4g.139gb 7g.278gb",
    ("A30", 24): "1g.6gb 2g.12gb 4g.24gb",
    ("RTX-PRO-6000", 96): "1g.24gb 2g.48gb 4g.96gb",
}


@pytest.mark.parametrize(("model", "size_gb"), PROFILES)
def test_profile_names(model: str, size_gb: int) -> None:
    cut = mig_geometry(model, size_gb * 1024)
    assert cut is not None
    assert [p.name for p in cut.profiles if not re.search(r"[+-]", p.name)] == PROFILES[model, size_gb].split()
    assert sum(p.name.startswith("1g") and p.media_extensions for p in cut.profiles) == 1


def test_every_size_of_every_card_is_named() -> None:
    assert set(PROFILES) == {(c.id, size) for c in cards().values() for size in c.mig_sizes_gb}


def test_the_name_that_a_device_reports_wins() -> None:
    usual = mig_geometry("GB200")
    assert usual is not None
    assert usual.size_gb == 186
    other = mig_geometry("GB200", None, ("1g.24gb", "3g.95gb"))
    assert other is not None
    assert other.size_gb == 189
    rounded = mig_geometry("GB200", 193_000, ("1g.23gb",))  # this driver rounds the smallest the other way
    assert rounded is not None
    assert [p.name for p in rounded.profiles][:2] == ["1g.23gb", "1g.23gb+me"]
    assert rounded.profiles[-1].name == "7g.189gb"
    unheard = mig_geometry("B200", 160 * 1024)
    assert unheard is not None
    assert unheard.profiles[-1].name == "7g.160gb"
    assert mig_geometry("T4") is None
    assert mig_geometry("nobody's card") is None


def test_mig_geometry() -> None:
    h200 = mig_geometry("H200-141")
    assert h200 is not None
    by_name = {p.name: p for p in h200.profiles}
    assert by_name["1g.18gb"].placements == (0, 1, 2, 3, 4, 5, 6)
    assert by_name["1g.35gb"].placements == (0, 2, 4, 6)
    assert by_name["3g.71gb"].memory_slices == 4
    assert by_name["7g.141gb"].compute_slices == 7
    assert by_name["1g.18gb"].sm_count == 16
    assert by_name["3g.71gb"].sm_count is None  # nobody told
    rtx = mig_geometry("RTX-PRO-6000")
    assert rtx is not None
    assert (rtx.compute_slices, rtx.memory_slices) == (4, 12)
    assert [p.placements for p in rtx.profiles if p.name == "1g.24gb"] == [(0, 3, 6, 9)]
    l40s = card("L40S")
    assert l40s is not None
    assert l40s.mig_profiles == ()


def test_a_larger_profile_has_no_fewer_sms_nor_less_memory() -> None:
    for found in cards().values():
        told = [p for p in found.mig_profiles if p.sm_count and p.memory_mib]
        for one, other in itertools.pairwise(told):
            assert (one.sm_count or 0) <= (other.sm_count or 0)
            assert (one.memory_mib or 0) <= (other.memory_mib or 0)
        for each in told:
            assert each.memory_mib is not None
            assert abs(each.memory_mib / 1024 - found.mig_sizes_gb[0] * each.memory_slices / _memory(found)) < 3


def _memory(found: Card) -> int:
    assert found.mig is not None
    return found.mig.memory_slices


def test_figures_are_plausible() -> None:
    for found in cards().values():
        assert 16_000 <= found.memory_total_mib <= 300_000 or found.id == "T4"
        assert 70 <= found.board_power_watts <= 1400
        assert 1 <= found.placement_tier <= 7
        assert (found.nvlink_version is None) == (found.nvlink_bytes_per_second is None)
