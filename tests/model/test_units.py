"""Parsing and printing of amounts."""

import pytest

from gpuwatch.model.units import gib, gpus, parse_bytes, parse_millicores


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("80GiB", 80 * 2**30),
        ("80Gi", 80 * 2**30),
        ("80GB", 80 * 10**9),
        ("1024", 1024),
        (" 1.5 KiB ", 1536),
        ("2t", 2 * 10**12),
    ],
)
def test_parse_bytes(text: str, amount: int) -> None:
    assert parse_bytes(text) == amount


@pytest.mark.parametrize("text", ["", "GiB", "-1G", "80 GiBs", "nan", "1e9"])
def test_parse_bytes_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="not an amount of memory"):
        parse_bytes(text)


@pytest.mark.parametrize(("text", "amount"), [("8", 8000), ("500m", 500), ("0.5", 500), ("0", 0)])
def test_parse_millicores(text: str, amount: int) -> None:
    assert parse_millicores(text) == amount


@pytest.mark.parametrize("text", ["", "m", "-1", "nan", "inf", "eight"])
def test_parse_millicores_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="not an amount of CPU"):
        parse_millicores(text)


def test_printing() -> None:
    assert [gpus(v) for v in (12000, 12500, 460, 0, -0.0, 1234567)] == ["12", "12.5", "0.46", "0", "0", "1,234.567"]
    assert gib(80 * 2**30) == "80 GiB"
    assert gib(7.5 * 2**30) == "7.5 GiB"
