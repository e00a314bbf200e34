"""Units at the edges: parsing what people and exporters write, printing what people read."""

from __future__ import annotations

import math
import re

MILLI = 1000
MIB = 1024**2
GIB = 1024**3
HOUR_SECONDS = 3600
WEEK_HOURS = 168
COMPUTE_SLICES = 7  # of a device in MIG mode; an instance counts its share of them

_BYTES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
_MANY = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
_FEWEST_PARAMETERS = 10**6
_PARAMETERS = re.compile(r"\s*(\d{1,30}(?:\.\d+)?)\s*([KMBT]?)\s*", re.IGNORECASE)
_QUANTITY = re.compile(r"\s*(\d{1,30}(?:\.\d+)?)\s*([KMGT]?I?)B?\s*", re.IGNORECASE)


def parse_bytes(text: str) -> int:
    """Bytes of "80GiB", "80Gi", "80G", "1024"; ValueError names the text.

    A bare or B-suffixed decimal prefix is decimal (80GB = 80e9), an i-prefix binary, as in Kubernetes quantities.
    """
    match = _QUANTITY.fullmatch(text)
    if not match or match[2].upper() not in _BYTES:
        raise ValueError(f"not an amount of memory: {text!r} (write for example 80GiB)")
    return round(float(match[1]) * _BYTES[match[2].upper()])


def parse_millicores(text: str) -> int:
    """Thousandths of a CPU of "8", "0.5", "500m"; ValueError names the text."""
    body = text.strip()
    try:
        cores = float(body[:-1]) / MILLI if body.endswith("m") else float(body)
    except ValueError:
        cores = math.nan
    if not math.isfinite(cores) or cores < 0:
        raise ValueError(f"not an amount of CPU: {text!r} (write for example 8 or 500m)")
    return round(cores * MILLI)


def parse_parameters(text: str) -> int:
    """Parameters of a model of "70B", "7b", "350M", "1.5T" or "70000000000"; ValueError names the text."""
    match = _PARAMETERS.fullmatch(text)
    amount = round(float(match[1]) * _MANY[match[2].upper()]) if match else 0
    if amount < _FEWEST_PARAMETERS:  # a bare 70 means billions, and says something else
        raise ValueError(f"not a number of parameters: {text!r} (write for example 70B)")
    return amount


def gpus(milligpu: float) -> str:
    """GPUs for people: "12", "12.5", "0.46"; thousandths are kept, trailing zeros are not."""
    return decimal(milligpu / MILLI)


def decimal(amount: float) -> str:
    """A number for people: "1,234", "0.5"; at most three decimals, without trailing zeros or a negative zero."""
    text = f"{amount:,.3f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def gib(amount_bytes: float) -> str:
    """Memory for people, in GiB with at most one decimal: "80 GiB", "7.5 GiB"."""
    return f"{amount_bytes / GIB:,.1f}".removesuffix(".0") + " GiB"
