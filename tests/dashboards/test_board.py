"""Every generated dashboard against the checklist: shape, layout, words, units, lines, variables."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from gpuwatch_dashboards.__main__ import main
from gpuwatch_dashboards.boards import board_files
from gpuwatch_dashboards.rules.files import differences
from gpuwatch_dashboards.thresholds import load_thresholds

from tests.dashboards import schema
from tests.dashboards.board import BOARDS, GENERATED, panels, queries, steps, variables_used

pytestmark = pytest.mark.parametrize("uid", sorted(BOARDS))
FORBIDDEN_KEYS = {
    "__inputs",
    "__requires",
    "rows",
    "style",
    "hideControls",
    "version",
    "iteration",
    "gnetId",
    "elements",
}


def walk(value: Any, path: str = "") -> list[tuple[str, Any]]:
    out = [(path, value)]
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        out += walk(part, f"{path}/{key}")
    return out


def test_shape(uid: str) -> None:
    checker = jsonschema.Draft202012Validator(schema.BOARD)
    faults = [f"{list(e.absolute_path)}: {e.message[:300]}" for e in checker.iter_errors(BOARDS[uid])]
    assert faults == []


def test_bytes_are_the_same_at_every_build(uid: str) -> None:
    first, second = board_files(), board_files()
    assert first == second
    assert first[f"{uid}.json"] == (GENERATED / f"{uid}.json").read_text()
    other = subprocess.run(
        [sys.executable, "-W", "error", "-m", "gpuwatch_dashboards", "build", "--check"],
        env={**os.environ, "PYTHONHASHSEED": "1"}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert other.returncode == 0, other.stderr


def test_no_outdated_key_and_no_null_but_the_two_that_mean_something(uid: str) -> None:
    for path, value in walk(BOARDS[uid]):
        key = path.rsplit("/", 1)[-1]
        assert key not in FORBIDDEN_KEYS, path
        if value is None:
            assert path == "/id" or path.endswith("/steps/0/value"), path


def test_uid_is_the_file_name(uid: str) -> None:
    assert BOARDS[uid]["uid"] == uid


def test_ids_and_titles_are_unique(uid: str) -> None:
    everything = BOARDS[uid]["panels"]
    ids = [panel["id"] for panel in everything]
    titles = [panel["title"] for panel in everything]
    assert len(set(ids)) == len(ids)
    assert len(set(titles)) == len(titles)
    assert all(0 < number < 2**31 for number in ids)


def test_grid_has_no_overlap_and_no_hole(uid: str) -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in BOARDS[uid]["panels"]:
        grid = panel["gridPos"]
        assert grid["x"] + grid["w"] <= 24, panel["title"]
        for x in range(grid["x"], grid["x"] + grid["w"]):
            for y in range(grid["y"], grid["y"] + grid["h"]):
                assert (x, y) not in taken, f"{panel['title']} lies on {taken[x, y]}"
                taken[x, y] = panel["title"]
    bottom = max(y for _, y in taken) + 1
    assert len(taken) == 24 * bottom, "a hole in the grid"


def test_a_row_title_starts_each_section(uid: str) -> None:
    first = BOARDS[uid]["panels"][0]
    assert first["type"] == "row"
    assert len(BOARDS[uid]["panels"]) - len(panels(BOARDS[uid])) >= 2


def test_words(uid: str) -> None:
    board = BOARDS[uid]
    assert len(board["description"]) >= 40
    for panel in panels(board):
        title, text = panel["title"], panel["description"]
        assert len(text) >= 60, title
        assert text.endswith("."), title
        assert "  " not in text, title
        assert len(panel["fieldConfig"]["defaults"]["noValue"]) >= 10, title
        assert "<" not in text + title, f"{title}: no markup"


def test_ratios_are_percentunit_between_0_and_1(uid: str) -> None:
    for panel in panels(BOARDS[uid]):
        defaults = panel["fieldConfig"]["defaults"]
        text = " ".join(target["expr"] for target in panel["targets"])
        if panel["type"] == "timeseries" and (":ratio" in text or "utilization" in text or "_ratio" in text):
            assert defaults["unit"] == "percentunit", panel["title"]
        if defaults["unit"] == "percentunit" and "relative to the limit" not in panel["title"]:
            assert defaults["max"] == 1, panel["title"]


@pytest.mark.parametrize(
    ("word", "unit"),
    [("celsius", "celsius"), (":watts", "watt"), ("_seconds", "s")],
    ids=["celsius", "watt", "seconds"],
)
def test_units_agree_with_the_metric(uid: str, word: str, unit: str) -> None:
    found = [p for p, t in queries(BOARDS[uid]) if word in t["expr"]]
    assert found
    assert {panel["fieldConfig"]["defaults"]["unit"] for panel in found} == {unit}


def test_lines_are_the_limits_of_the_alerts(uid: str) -> None:
    number = load_thresholds().number
    wanted = {
        "Mean utilization by model": ["utilization_low_ratio"],
        "Mean memory in use by model": ["memory_high_ratio", "memory_critical_ratio"],
        "Hottest device by model": ["temperature_hot_celsius", "temperature_very_hot_celsius"],
        "Smallest distance to slowdown by model": [
            "temperature_very_hot_margin_celsius", "temperature_hot_margin_celsius",
        ],
        "Highest power relative to the limit by model": ["power_near_ratio", "power_over_ratio"],
        "Fragmentation index by pool": ["fragmentation_clear_index", "fragmentation_high_index"],
        "Age of the judged cluster state": ["snapshot_stale_seconds"],
    }  # fmt: skip
    by_title = {panel["title"]: panel for panel in panels(BOARDS[uid])}
    for title, names in wanted.items():
        assert steps(by_title[title]) == [None, *(number(name) for name in names)], title
        assert by_title[title]["fieldConfig"]["defaults"]["custom"]["thresholdsStyle"]["mode"] == "line"


def test_steps_ascend(uid: str) -> None:
    for panel in panels(BOARDS[uid]):
        values = [value for value in steps(panel) if value is not None]
        assert values == sorted(set(values)), panel["title"]


def test_instant_where_one_number_is_shown_and_range_where_a_line_is(uid: str) -> None:
    for panel, target in queries(BOARDS[uid]):
        assert target["instant"] is (panel["type"] != "timeseries"), panel["title"]
        assert target["range"] is not target["instant"]
        assert (target["format"] == "table") is (panel["type"] == "table")


def test_ref_ids_are_unique_and_series_are_named(uid: str) -> None:
    for panel in panels(BOARDS[uid]):
        refs = [target["refId"] for target in panel["targets"]]
        assert len(set(refs)) == len(refs)
        if panel["type"] in ("timeseries", "bargauge"):
            assert all("{{" in target["legendFormat"] for target in panel["targets"]), panel["title"]
            legends = [target["legendFormat"] for target in panel["targets"]]
            assert len(set(legends)) == len(legends), panel["title"]


def test_tables_name_their_columns(uid: str) -> None:
    for panel in panels(BOARDS[uid]):
        if panel["type"] != "table":
            continue
        options = panel["transformations"][-1]["options"]
        assert options["excludeByName"]["Time"] is True
        if len(panel["targets"]) > 1:
            assert set(options["renameByName"]) == {f"Value #{target['refId']}" for target in panel["targets"]}
            assert len(set(options["renameByName"].values())) == len(panel["targets"])


def test_variables(uid: str) -> None:
    board = BOARDS[uid]
    names = [variable["name"] for variable in board["templating"]["list"]]
    assert names[:2] == ["datasource", "cluster"]
    texts = [target["expr"] for _, target in queries(board)]
    texts += [annotation["expr"] for annotation in board["annotations"]["list"]]
    used = set().union(*map(variables_used, texts), {"datasource"})
    assert used == set(names)


def test_alerts_are_an_annotation_of_the_chosen_cluster(uid: str) -> None:
    (annotation,) = BOARDS[uid]["annotations"]["list"]
    assert annotation["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert 'cluster=~"$cluster"' in annotation["expr"]


def test_links_keep_the_time_range_and_the_variables(uid: str) -> None:
    (link,) = BOARDS[uid]["links"]
    assert link["keepTime"]
    assert link["includeVars"]
    assert link["tags"] == ["gpuwatch"]


def test_small_enough_for_a_config_map(uid: str) -> None:
    assert (GENERATED / f"{uid}.json").stat().st_size < 1024 * 1024


def test_a_stale_file_is_named(uid: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", "--output", str(tmp_path)]) == 0
    (tmp_path / f"{uid}.json").write_text("{}\n")
    capsys.readouterr()
    assert main(["build", "--check", "--output", str(tmp_path)]) == 1
    assert f"{uid}.json: differs" in capsys.readouterr().err
    assert differences(board_files(), GENERATED) == []
