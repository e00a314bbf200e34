"""The layer between intent and JSON: the grid, stable ids, repairs of grafanalib's shapes, errors."""

from __future__ import annotations

import pytest
from gpuwatch_dashboards.author import panel_id
from gpuwatch_dashboards.grid import COLUMNS, pack
from gpuwatch_dashboards.normalize import normalize
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.errors import InputError


@given(widths=st.lists(st.integers(1, COLUMNS), max_size=30), height=st.integers(1, 12), top=st.integers(0, 50))
def test_packed_panels_never_overlap_and_keep_their_order(widths: list[int], height: int, top: int) -> None:
    places, below = pack([(width, height) for width in widths], top)
    cells = [(x, y) for p in places for x in range(p.x, p.x + p.width) for y in range(p.y, p.y + p.height)]
    assert len(cells) == len(set(cells)) == sum(widths) * height
    assert all(p.x + p.width <= COLUMNS and top <= p.y < below for p in places)
    assert [(p.y, p.x) for p in places] == sorted((p.y, p.x) for p in places)
    assert below == (max(y for _, y in cells) + 1 if cells else top)


@pytest.mark.parametrize("size", [(0, 4), (25, 4), (4, 0), (-1, 4)])
def test_impossible_sizes_are_refused(size: tuple[int, int]) -> None:
    with pytest.raises(InputError, match="does not fit"):
        pack([size], 0)


def test_uneven_lines_are_refused() -> None:
    with pytest.raises(InputError, match="4 and 8 cells high"):
        pack([(4, 4), (4, 8)], 0)


def test_panel_ids_depend_on_names_alone() -> None:
    assert panel_id("gw-fleet", "Power") == panel_id("gw-fleet", "Power")
    assert panel_id("gw-fleet", "Power") != panel_id("gw-node", "Power")


def test_repairs_of_the_old_shapes() -> None:
    raw = {
        "__inputs": [], "rows": [], "style": "dark", "version": 0, "id": 4, "schemaVersion": 12, "title": "t",
        "timepicker": {"refresh_intervals": []},
        "templating": {"list": [{"type": "query", "name": "c", "query": "label_values(x, c)", "useTags": False,
                                 "current": {"text": "All", "value": "All", "tags": []}, "tagsQuery": None}]},
        "panels": [{
            "type": "table", "title": "p", "span": [6], "mappings": [], "color": {"mode": "thresholds"},
            "fieldConfig": {"defaults": {
                "custom": {"displayMode": "auto", "align": "auto", "axisSoftMin": None}, "decimals": None,
                "thresholds": {"mode": "absolute", "steps": [
                    {"color": "green", "value": "null", "op": "gt", "line": True},
                    {"color": "red", "value": 5, "op": "gt"}]}}},
            "options": {"showHeader": True}, "transformations": [],
            "targets": [{"expr": "x", "instant": True, "step": 10, "intervalFactor": 2, "refId": "A", "metric": ""}],
        }],
    }  # fmt: skip
    board = normalize(raw)
    assert set(board) == {"id", "schemaVersion", "title", "timepicker", "templating", "panels"}
    assert board["id"] is None
    assert board["schemaVersion"] == 39
    (panel,) = board["panels"]
    assert set(panel) == {"type", "title", "fieldConfig", "options", "targets", "pluginVersion"}
    assert panel["fieldConfig"] == {
        "defaults": {
            "mappings": [], "color": {"mode": "thresholds"},
            "custom": {"align": "auto", "cellOptions": {"type": "auto"}},
            "thresholds": {
                "mode": "absolute", "steps": [{"color": "green", "value": None}, {"color": "red", "value": 5}]},
        },
        "overrides": [],
    }  # fmt: skip
    assert panel["targets"] == [{"expr": "x", "refId": "A", "editorMode": "code", "instant": True, "range": False}]
    (variable,) = board["templating"]["list"]
    assert variable["current"] == {"selected": True, "text": ["All"], "value": ["$__all"]}
    assert "useTags" not in variable
