"""The exporter's page as numbers."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families


class Page:
    """Samples of a page; names without their prefix."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.samples = {
            (sample.name.removeprefix("gpuwatch_slurm_"), frozenset(sample.labels.items())): sample.value
            for each in text_string_to_metric_families(text)
            for sample in each.samples
        }

    def get(self, name: str, **labels: str) -> float | None:
        """The one sample with exactly these labels beside `cluster`; None when there is none."""
        found = [
            value
            for (each, held), value in self.samples.items()
            if each == name and {k: v for k, v in held if k != "cluster"} == labels
        ]
        assert len(found) < 2
        return found[0] if found else None

    def sum(self, name: str, **labels: str) -> float:
        """The sum of the samples that carry these labels."""
        wanted = set(labels.items())
        return sum(value for (each, held), value in self.samples.items() if each == name and wanted <= held)

    def names(self) -> set[str]:
        """Names of all families with samples."""
        return {name for name, _ in self.samples}
