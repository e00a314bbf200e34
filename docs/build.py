"""Writes the generated files under docs/. `--check` writes nothing and fails when one of them is out of date."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from exporter_metrics import exporters_page
from slurm_metrics import slurm_page

from gpuwatch.model.codec import snapshot_json_schema
from gpuwatch.render.metric_catalogue import catalogue_page

DOCS = Path(__file__).parent

GENERATED: dict[str, Callable[[], str]] = {
    "metrics.md": catalogue_page,
    "exporters.md": exporters_page,
    "exporters/slurm.md": slurm_page,
    "snapshot.schema.json": snapshot_json_schema,
}


def main(arguments: list[str]) -> int:
    """Returns the exit status: 1 when --check finds a difference."""
    stale = []
    for name, build in GENERATED.items():
        path, text = DOCS / name, build()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in arguments:
            path.write_text(text, encoding="utf-8")
    if stale and "--check" in arguments:
        print(f"out of date: {', '.join(stale)}; run: python docs/build.py", file=sys.stderr)
        return 1
    print(f"docs: {len(GENERATED)} generated file(s), {len(stale)} changed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
