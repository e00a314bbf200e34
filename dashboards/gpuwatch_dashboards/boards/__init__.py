"""The dashboards, one file each. A new board is a new file that registers a function from thresholds to a Board."""

from __future__ import annotations

import json
from collections.abc import Callable

from gpuwatch.registry import Registry
from gpuwatch_dashboards.intent import Board
from gpuwatch_dashboards.thresholds import Thresholds, load_thresholds

BOARDS: Registry[Callable[[Thresholds], Board]] = Registry("board", __name__)


def board_files() -> dict[str, str]:
    """Every dashboard as JSON text by file name (its uid). Equal input gives equal bytes."""
    from gpuwatch_dashboards.author import dashboard
    from gpuwatch_dashboards.normalize import normalize

    thresholds = load_thresholds()
    files = {}
    for uid, make in BOARDS.items():
        plain = json.loads(json.dumps(dashboard(make(thresholds)), default=lambda part: part.to_json_data()))
        files[f"{uid}.json"] = json.dumps(normalize(plain), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    return files
