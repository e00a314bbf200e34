"""The page: which values it holds when, and that every form of it is valid text."""

from __future__ import annotations

import gzip
import subprocess
import time
from pathlib import Path

import pytest
from gpuwatch_exporters.serving.cycles import Cycles, Outcome
from gpuwatch_exporters.serving.page import Pages, pack
from gpuwatch_exporters.serving.self_metrics import SelfMetrics
from prometheus_client.parser import text_string_to_metric_families

from tests.exporters.serving.tiny import PAGE, Tiny


@pytest.fixture
def pages(tmp_path: Path) -> Pages:
    cycles = Cycles(Tiny(tmp_path / "page"), 10, lambda _: None)
    return Pages(SelfMetrics("tiny", cycles), cycles)


def outcome(text: str | None, age_seconds: float = 0.0) -> Outcome:
    return Outcome(text, "" if text is not None else "broken", 0.01, time.monotonic() - age_seconds)


def values(text: str) -> dict[str, float]:
    """The samples without process_ and python_ ones; the strict parser raises on what is not valid."""
    found = [sample for each in text_string_to_metric_families(text) for sample in each.samples]
    return {
        each.name + "".join(f",{text}" for name, text in each.labels.items() if name not in ("exporter", "node")):
        each.value for each in found if not each.name.startswith(("process_", "python_"))
    }  # fmt: skip


def test_before_the_first_cycle_there_is_a_page_without_values(pages: Pages) -> None:
    found = values(pages.current().plain.decode())
    assert found["gpuwatch_exporter_values_served"] == 0
    assert "tiny_ratio" not in found
    assert "gpuwatch_exporter_last_success_timestamp_seconds" not in found
    assert "gpuwatch_exporter_page_bytes" not in found
    assert not pages.ready()


def test_half_a_surrogate_in_a_label_takes_no_page_with_it(pages: Pages) -> None:
    pages.put(outcome('tiny_ratio{account="\ud800x"} 1\n'))
    assert values(pages.current().plain.decode())["tiny_ratio,?x"] == 1


def test_a_good_cycle_puts_its_values_on_the_page_until_one_fails(pages: Pages) -> None:
    pages.put(outcome(PAGE))
    page = pages.current()
    found = values(page.plain.decode())
    assert (found["tiny_ratio"], found["gpuwatch_exporter_values_served"]) == (0.5, 1)
    assert found["gpuwatch_exporter_page_bytes"] == len(PAGE)
    assert pages.current() is page
    pages.put(outcome(None))
    found = values(pages.current().plain.decode())
    assert "tiny_ratio" not in found
    assert not pages.ready()
    pages.put(outcome(PAGE))
    assert pages.ready()


@pytest.mark.parametrize(("age_seconds", "held"), [(29.0, True), (31.0, False)])
def test_values_are_withdrawn_when_no_cycle_ends_for_three_intervals(
    pages: Pages, age_seconds: float, held: bool
) -> None:
    pages.put(outcome(PAGE, age_seconds))
    assert (pages.current().values_bytes is not None) == held
    assert pages.ready() == held
    assert ("tiny_ratio" in pages.file_text()) == held


def test_a_page_without_values_tells_what_was_counted_meanwhile(pages: Pages) -> None:
    first = pages.current()
    first.made_monotonic -= 2
    assert pages.current() is not first


def test_the_packed_page_is_the_same_text(pages: Pages) -> None:
    pages.put(outcome(PAGE))
    page = pages.current(packed=True)
    assert gzip.decompress(page.packed()) == page.plain
    assert page.packed() is page.packed()
    pages.put(outcome(PAGE))  # somebody asked: packed ahead from now on
    assert pages.current()._packed is not None


def test_equal_texts_are_packed_alike() -> None:
    assert pack(b"a" * 1000) == pack(b"a" * 1000)


def test_a_last_line_without_its_end_gets_one(pages: Pages) -> None:
    pages.put(outcome(PAGE.rstrip("\n")))
    assert values(pages.current().plain.decode())["tiny_ratio"] == 0.5


def test_a_file_has_no_families_of_the_process_since_its_reader_has_its_own(pages: Pages) -> None:
    pages.put(outcome(PAGE))
    assert "process_resident_memory_bytes " in pages.current().plain.decode()
    assert "process_" not in pages.file_text()
    assert "python_" not in pages.file_text()
    assert values(pages.file_text())["tiny_ratio"] == 0.5


def test_every_family_of_ours_names_the_exporter(pages: Pages) -> None:
    pages._metrics.reloaded(True)
    pages.put(outcome(PAGE))
    for each in text_string_to_metric_families(pages.current().plain.decode()):
        for sample in each.samples:
            if sample.name.startswith("gpuwatch_exporter_"):
                assert sample.labels["exporter"] == "tiny", sample


@pytest.mark.server
def test_promtool_has_nothing_to_say(pages: Pages, promtool_program: str) -> None:
    pages._metrics.reloaded(True)
    pages._metrics.reloaded(False)
    pages._metrics.scraped(401)
    for text in (PAGE, None):
        pages.put(outcome(text))
        done = subprocess.run(
            [promtool_program, "check", "metrics"], input=pages.current().plain, capture_output=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
