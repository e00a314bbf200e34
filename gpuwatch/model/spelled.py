"""Names of cards and MIG profiles as people write them in a request."""

from __future__ import annotations

from collections.abc import Iterable

from gpuwatch.model.catalogue import cards, claiming


def card_ids(names: Iterable[str]) -> tuple[str, ...]:
    """Catalogue ids of the cards that `names` mean, in that order: "h100-80", "NVIDIA H100 80GB HBM3"; "A100" means
    those of every memory size. A name that no card claims is taken as written, as an exporter may write it so too."""
    return tuple(dict.fromkeys(found for name in names for found in _ids(name.strip())))


def profile_name(text: str) -> str:
    """ "1g.10gb+me" for "1g.10gb+me", "MIG-1G.10GB+ME", "nvidia.com/mig-1g.10gb.me"."""
    name = text.strip().lower().removeprefix("nvidia.com/").removeprefix("mig-")
    head, dot, extension = name.rpartition("gb.")
    return f"{head}gb+{extension}" if dot else name


def _ids(name: str) -> list[str]:
    same = [known for known in cards() if known.lower() == name.lower()]
    return same or [card.id for card in claiming(name)] or [name]
