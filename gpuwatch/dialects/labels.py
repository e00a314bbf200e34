"""Reading labels whose spelling depends on the exporter's version or on how the scraper was set up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuwatch.model.observations import ScrapeTarget

# A scraper that does not honor labels moves the exporter's own ones aside under this prefix, and the plain name then
# speaks of the exporter itself.
MOVED = "exported_"


def own(labels: Mapping[str, str], names: Iterable[str]) -> tuple[str | None, str | None]:
    """(value, name it was found under) of the first of `names` that the exporter itself wrote; (None, None) if none."""
    spellings = tuple(names)
    for name in (*(MOVED + spelling for spelling in spellings), *spellings):
        if text := labels.get(name):
            return text, name
    return None, None


def text_of(labels: Mapping[str, str], *names: str) -> str | None:
    """Only the value of `own`."""
    return own(labels, names)[0]


def target_of(labels: Mapping[str, str]) -> ScrapeTarget | None:
    """The scraped endpoint, or None for samples that no scraper has touched (a file, a test)."""
    job, instance = labels.get("job"), labels.get("instance")
    return ScrapeTarget(job=job or "", instance=instance) if instance else None


def whole_number(text: str | None) -> int | None:
    """0, 1, 2 ... of a label text; None for anything else."""
    return int(text) if text is not None and text.isascii() and text.isdecimal() else None
