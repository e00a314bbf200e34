"""Names of MIG profiles: from the driver's texts, or from sizes where there is no text."""

from __future__ import annotations

import pytest
from gpuwatch_exporters.nvml.mig import clean_name, size_name
from hypothesis import given
from hypothesis import strategies as st

GB = 1 << 30


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("MIG 1g.10gb", "1g.10gb"),
        (b"MIG 7g.80gb", "7g.80gb"),
        ("1g.10gb+me", "1g.10gb+me"),
        ("MIG 1g.12gb+me.all", "1g.12gb+me.all"),
        ("MIG 2g.35gb-me", "2g.35gb-me"),
        ("MIG 1g.24gb+gfx", "1g.24gb+gfx"),
        ("1c.3g.40gb", "1c.3g.40gb"),
        ("1G.10GB", "1g.10gb"),
        ("  MIG 4g.71gb ", "4g.71gb"),
    ],
)
def test_the_drivers_text_is_the_name(told: str | bytes, name: str) -> None:
    assert clean_name(told) == name


@pytest.mark.parametrize(
    "told", ["", "NULL", "N/A", "[N/A]", "MIG", "MIG NULL", "Unknown", "1g.10gb; drop", "\x00", b"\xff"]
)
def test_a_placeholder_is_no_name(told: str | bytes) -> None:
    assert clean_name(told) is None


@given(st.text())
def test_no_text_becomes_a_name_by_chance(text: str) -> None:
    name = clean_name(text)
    assert name is None or ("g." in name and "gb" in name)


# Sizes as drivers tell them: memory of the board in bytes, slices and MiB of the profile.
@pytest.mark.parametrize(
    ("board", "slices", "mib", "name"),
    [
        (85520809984, 1, 9856, "1g.10gb"),  # H100 80 GB
        (85520809984, 1, 20096, "1g.20gb"),
        (85520809984, 2, 20096, "2g.20gb"),
        (85520809984, 3, 40448, "3g.40gb"),
        (85520809984, 4, 40448, "4g.40gb"),
        (85520809984, 7, 81153, "7g.80gb"),
        (42298834944, 1, 4864, "1g.5gb"),  # A100 40 GB
        (42298834944, 2, 9856, "2g.10gb"),
        (42298834944, 3, 19968, "3g.20gb"),
        (42298834944, 7, 40192, "7g.40gb"),
        (150754820096, 1, 16384, "1g.18gb"),  # H200 141 GB
        (150754820096, 7, 143771, "7g.141gb"),
    ],
)
def test_sizes_give_the_drivers_names(board: int, slices: int, mib: int, name: str) -> None:
    assert size_name(slices, mib, board) == name
