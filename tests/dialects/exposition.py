"""Exposition text, as an exporter writes it, to samples, as a reader gets them."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from gpuwatch.model.observations import Sample, Statistic


def samples(text: str, statistic: Statistic = "now", **scraped: str) -> list[Sample]:
    """All samples of `text`; `scraped` are labels that the scraper adds (job, instance ...) where absent."""
    lines = "\n".join(line.strip() for line in text.strip().splitlines()) + "\n"
    return [
        Sample(metric=sample.name, labels={**scraped, **sample.labels}, value=sample.value, statistic=statistic)
        for family in text_string_to_metric_families(lines)
        for sample in family.samples
    ]
