"""The counter lists for NVIDIA's dcgm-exporter: everything that is read of it is in them, in a form that it takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from gpuwatch.dialects.dcgm import TABLE

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy" / "dcgm-exporter"
OLD, NEW = FOLDER / "counters.csv", FOLDER / "counters-4.9.csv"
LISTS = pytest.mark.parametrize("path", [OLD, NEW], ids=["up to 4.8", "since 4.9"])
NAME = re.compile(r"DCGM_(FI_DEV|FI_PROF|EXP)_[A-Z0-9_]+")
# Computed by the exporter itself, named alike in both generations.
OF_THE_EXPORTER = re.compile(r"DCGM_EXP_")


def rows(path: Path) -> list[list[str]]:
    lines = path.read_text().splitlines()
    return [[each.strip() for each in line.split(",")] for line in lines if line.strip() and not line.startswith("#")]


def names(path: Path) -> set[str]:
    return {name for name, kind, _ in rows(path) if kind != "label"}


def read_by_rules() -> set[str]:
    texts = [each.read_text() for each in (ROOT / "alert_rules" / "rules").rglob("*.yaml")]
    return {found[0] for text in texts for found in NAME.finditer(text)}


@LISTS
def test_every_line_is_name_type_and_help_and_stands_once(path: Path) -> None:
    found = rows(path)
    assert all(len(each) == 3 for each in found)
    for name, kind, told in found:
        assert re.fullmatch(r"DCGM_(FI|EXP)_[A-Z0-9_]+", name), name
        assert kind in ("gauge", "counter", "label"), name
        assert told, name
        assert '"' not in told, name
    every = [name for name, _, _ in found]
    assert len(every) == len(set(every))
    assert [kind for _, kind, _ in found].count("label") == 1


def test_everything_that_the_reader_knows_is_in_one_of_the_lists() -> None:
    assert set(TABLE) - names(OLD) - names(NEW) == set()


def test_everything_that_a_rule_reads_is_in_one_of_the_lists() -> None:
    wanted = read_by_rules()
    assert len(wanted) > 20
    assert wanted - names(OLD) - names(NEW) == set()


@LISTS
def test_each_list_alone_gives_every_quantity(path: Path) -> None:
    """Whoever loads one list must not lack what only the other generation's name would bring."""
    assert {TABLE[name].field for name in names(path) & set(TABLE)} == {each.field for each in TABLE.values()}


def test_the_two_lists_share_no_quantity_in_two_units() -> None:
    """A field under one name in both lists is of one unit in all releases."""
    assert {name for name in names(OLD) & names(NEW) if not OF_THE_EXPORTER.match(name)} == {
        "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        "DCGM_FI_DEV_ROW_REMAP_PENDING",
        "DCGM_FI_PROF_PCIE_TX_BYTES",
        "DCGM_FI_PROF_PCIE_RX_BYTES",
    }


def test_the_values_keep_pod_labels_and_sample_within_the_scrape_interval() -> None:
    values = yaml.safe_load((FOLDER / "values.yaml").read_text())
    assert values["serviceMonitor"]["honorLabels"] is True
    assert values["kubernetes"]["enablePodLabels"] is False
    [interval] = [each for each in values["arguments"] if each.startswith("--collect-interval=")]
    sample_ms = int(interval.partition("=")[2])
    assert sample_ms <= 1000 * int(values["serviceMonitor"]["interval"].removesuffix("s"))
    assert {each["name"]: each["value"] for each in values["extraEnv"]}["DCGM_EXPORTER_KUBERNETES_GPU_ID_TYPE"] == "uid"


def test_arguments_stay_texts_in_a_chart_that_writes_them_without_quotes() -> None:
    arguments = yaml.safe_load((FOLDER / "values.yaml").read_text())["arguments"]
    assert yaml.safe_load("".join(f"- {each}\n" for each in arguments)) == arguments


def test_the_readme_names_files_that_are_there() -> None:
    text = (FOLDER / "README.md").read_text()
    for name in re.findall(r"`([a-z0-9.-]+\.(?:csv|yaml))`", text):
        assert (FOLDER / name).is_file(), name
