"""Prometheus text: escaping, families and numbers as the exporters print them."""

from __future__ import annotations

from collections.abc import Iterable

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def labels(pairs: Iterable[tuple[str, str]]) -> str:
    """`a="x",b="y"` with escaped values, in the order given."""
    return ",".join(f'{name}="{text.translate(_ESCAPES)}"' for name, text in pairs)


def family(name: str, kind: str, told: str) -> str:
    """The HELP and TYPE lines of one metric."""
    clean = told.replace("\\", "\\\\").replace("\n", " ")
    return f"# HELP {name} {clean}\n# TYPE {name} {kind}\n"


def number(amount: float) -> str:
    """Whole numbers without a point, others with six decimals at most."""
    return str(int(amount)) if float(amount).is_integer() else f"{amount:.6f}".rstrip("0").rstrip(".")


def exact(amount: float) -> str:
    """Whole numbers without a point, others with every digit that a reader needs to get the same number back."""
    return str(int(amount)) if float(amount).is_integer() else repr(float(amount))
