"""A field value of DCGM as a number or text, or why it is neither.

DCGM writes "no value" as numbers: the blanks. Three kinds of them exist, and each has sixteen meanings.
"""

from __future__ import annotations

import math
from typing import Any

_INT64_BLANK = 0x7FFFFFFFFFFFFFF0
_INT32_BLANK = 0x7FFFFFF0
_FP64_BLANK = 2.0**47
_MEANINGS = ("blank", "not_found", "not_supported", "no_permission")


class Missing(str):
    """Why there is no value: a word for the label `reason`."""

    __slots__ = ()


def number(told: Any) -> float | Missing:
    """The number in a field value structure whose status is good: int64, time or double; anything else is missing."""
    kind = chr(told.fieldType & 0xFF)
    if kind in "it":
        return _integer(int(told.value.i64))
    if kind == "d":
        return _double(float(told.value.dbl))
    return Missing("not_a_number")


def text(told: Any) -> str:
    """The text in a field value structure, "" for a blank."""
    if chr(told.fieldType & 0xFF) != "s":
        return ""
    return clean(told.value.str)


def clean(raw: str | bytes) -> str:
    """A text of DCGM, "" for the texts by which it says that there is none."""
    plain = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    return "" if plain.startswith("<<<") and plain.endswith(">>>") else plain.strip()


def _integer(amount: int) -> float | Missing:
    if amount >= _INT64_BLANK:
        return _meaning(amount - _INT64_BLANK)
    # The blanks of 32 bits leak through fields of 64 in some releases. Only those four: the energy of a busy GPU
    # passes this range within a month.
    if _INT32_BLANK <= amount < _INT32_BLANK + len(_MEANINGS):
        return _meaning(amount - _INT32_BLANK)
    return float(amount)


def _double(amount: float) -> float | Missing:
    if not math.isfinite(amount):
        return Missing("not_finite")
    if amount >= _FP64_BLANK:
        return _meaning(int(min(amount - _FP64_BLANK, 99)))
    return amount


def _meaning(offset: int) -> Missing:
    return Missing(_MEANINGS[offset] if offset < len(_MEANINGS) else "blank")
