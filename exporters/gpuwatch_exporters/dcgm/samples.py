"""Samples of DCGM as values of our families."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from gpuwatch_exporters.dcgm.topic import Field, Topic
from gpuwatch_exporters.device.family import FAMILIES, Family
from gpuwatch_exporters.device.frame import Value

_HIGHEST_RATIO = 1.01  # samplers round: what is a little above full is full, what is beyond is no share
_BEYOND_ONE = ("gpuwatch_gpu_fan_speed_ratio",)  # a fan may turn faster than what it is rated for


class Translator:
    """The fields of topics with their families found. RegistryError for a family that nobody declares."""

    def __init__(self, topics: Mapping[str, Topic]) -> None:
        self._known: dict[int, tuple[Field, Family]] = {
            id_: (each, FAMILIES.get(each.family)) for topic in topics.values() for id_, each in topic.fields.items()
        }

    def values(self, sampled: Mapping[int, float], dropped: Counter[str]) -> Iterator[Value]:
        """The values of one entity's samples, field by field. dropped: counts numbers that the field cannot have."""
        for id_, raw in sampled.items():
            of, family = self._known[id_]
            if of.bits is not None:
                yield from _bits(family, of.bits, int(raw))
                continue
            amount = _amount(of, raw)
            if amount is None:
                continue
            if family.name.endswith("_ratio") and family.name not in _BEYOND_ONE:
                if not 0 <= amount <= _HIGHEST_RATIO:
                    dropped["out_of_range"] += 1
                    continue
                amount = min(amount, 1.0)
            yield Value(family, of.labels, amount)


def _amount(of: Field, raw: float) -> float | None:
    """The number in our unit, None where DCGM's says that there is none."""
    if of.choices is not None:
        return of.choices.get(int(raw))
    return None if of.zero_is_none and not raw else raw * of.factor


def _bits(family: Family, names: Mapping[int, str], mask: int) -> Iterator[Value]:
    """0 or 1 for each named bit; one without a name is told while it is set."""
    for bit in range(max(mask.bit_length(), max(names) + 1)):
        if bit in names or mask >> bit & 1:
            yield Value(family, (names.get(bit, f"bit_{bit}"),), mask >> bit & 1)
