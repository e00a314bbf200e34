"""Samples as Prometheus text: one block per family, sorted by name."""

from __future__ import annotations

from collections.abc import Iterable

from gpuwatch_exporters.exposition import exact, family, labels
from gpuwatch_exporters.slurm.family import CLUSTER_LABEL, Family, Sample


def render(samples: Iterable[Sample], cluster: str) -> str:
    """The page's text with a final newline. Within a family, samples keep their order."""
    blocks: dict[Family, list[str]] = {}
    for each, texts, number in samples:
        pairs = list(zip(each.labels, texts, strict=True))
        if each.scope == "cluster":
            pairs.insert(0, (CLUSTER_LABEL, cluster))
        told = f"{{{labels(pairs)}}}" if pairs else ""
        blocks.setdefault(each, []).append(f"{each.name}{told} {exact(number)}\n")
    ordered = sorted(blocks.items(), key=lambda pair: pair[0].name)
    return "".join(family(each.name, each.kind, each.help) + "".join(lines) for each, lines in ordered)
