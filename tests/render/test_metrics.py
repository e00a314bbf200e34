"""Metrics: the catalogue is the contract, what is unknown is absent, names and text stand strict checks."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from prometheus_client import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from gpuwatch.model.evaluation import Evaluation
from gpuwatch.model.snapshot import SourceHealth
from gpuwatch.render.metric_catalogue import METRICS, catalogue_page
from gpuwatch.render.metrics import Operation, metric_families, registry
from tests.builders import NOW, a_shape
from tests.evaluations import a_forecast, an_evaluation

OPERATION = Operation(
    now=NOW + timedelta(seconds=42),
    sources=(
        SourceHealth(name="prometheus:a", kind="prometheus", ok=False, observed_at=NOW),
        SourceHealth(name="file:b", kind="file", ok=False),
    ),
    store_ok=False,
    stage_seconds={"read": 0.25},
    stage_failures={"read": 3},
    evaluations=7,
    ready=True,
    version="1.2.3",
)


def values(evaluation, operation=OPERATION) -> dict[tuple, float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in metric_families(evaluation, operation)
        for sample in family.samples
    }


def test_the_page_of_the_catalogue_is_the_one_in_docs():
    page = Path(__file__).parents[2] / "docs" / "metrics.md"
    assert page.read_text(encoding="utf-8") == catalogue_page()


def test_every_family_of_the_catalogue_is_emitted_and_no_other():
    emitted = {s.name: tuple(s.labels) for f in metric_families(an_evaluation(), OPERATION) for s in f.samples}
    assert emitted == {each.name: each.labels for each in METRICS}


def test_no_label_can_hold_a_job_or_a_device():
    for each in METRICS:
        assert not {"job", "pod", "node", "uuid", "gpu", "id", "instance", "quantile", "le"} & set(each.labels)


def test_values_are_those_of_the_evaluation():
    found = values(an_evaluation())
    assert found["gpuwatch_gpus", "test", "a", "H100-80", "idle_held"] == 3.0
    assert found["gpuwatch_gpus", "test", "a", "H100-80", "blocked"] == 2.0
    assert found["gpuwatch_gpus", "test", "a", "H100-80", "stranded"] == 1.25
    assert found["gpuwatch_blocked_gpus", "test", "a", "H100-80", "cordoned"] == 1.0
    assert found["gpuwatch_stranded_milligpu", "test", "a", "gpu_lacking"] == 1250.0
    assert found["gpuwatch_pending_gpus", "test", "a", "all"] == 2.0
    assert found["gpuwatch_forecast_gpus", "test", "a", "all", "1h", "mean"] == 9.0
    assert found["gpuwatch_forecast_gpus", "test", "a", "all", "6h", "0.9"] == 16.0
    assert found["gpuwatch_forecast_gpus", "test", "a", "all", "1h", "0.025"] == 7.0
    assert found["gpuwatch_recommendations", "test", "idle_held", "critical"] == 1.0
    assert found["gpuwatch_recoverable_gpus", "test", "idle_held"] == 6.0
    assert found["gpuwatch_findings", "test", "unknown_node", "warning"] == 2.0
    assert found["gpuwatch_snapshot_age_seconds", "test"] == 42.0
    assert found["gpuwatch_source_age_seconds", "prometheus:a"] == 42.0
    assert found["gpuwatch_evaluation_failures_total", "read"] == 3.0


def test_sums_over_pools_and_models_count_every_gpu_once():
    evaluation = an_evaluation()
    found = values(evaluation)
    for state in ("installed", "allocated", "free"):
        total = sum(number for key, number in found.items() if key[0] == "gpuwatch_gpus" and key[4] == state)
        assert total * 1000 == getattr(evaluation.waterfall, f"{state}_milligpu")


def test_what_is_not_known_is_absent_never_zero():
    found = values(an_evaluation())
    assert ("gpuwatch_fragmentation_index", "test", "all", "all") in found
    assert ("gpuwatch_fragmentation_index", "test", "b", "all") not in found  # nothing is free there
    assert ("gpuwatch_source_age_seconds", "file:b") not in found
    assert not [key for key in found if key[0].startswith("gpuwatch_forecast") and key[2] == "b"]
    short = values(an_evaluation(forecasts=(a_forecast(steps=a_forecast().steps[:23]),)))
    assert {key[4] for key in short if key[0] == "gpuwatch_forecast_gpus"} == {"1h", "6h"}  # 24h is beyond the last
    assert {key[4] for key in found if key[0] == "gpuwatch_forecast_gpus"} == {"1h", "6h", "24h"}
    bare = values(Evaluation(id="x", cluster="c", snapshot_taken_at=NOW), replace(OPERATION, store_ok=None))
    assert not [key for key in bare if key[0] in ("gpuwatch_gpus", "gpuwatch_shape_fits", "gpuwatch_store_up")]
    assert [key[0] for key in values(None) if key[0].startswith("gpuwatch_snapshot")] == []


def test_no_series_is_sent_twice_even_when_two_shapes_print_alike():
    report = an_evaluation().fragmentation
    twin = replace(report.shapes[0], shape=a_shape(8, memory_bytes=1), fits_now=3)
    assert twin.shape.label.startswith("8xGPU")
    near = replace(report.shapes[0], shape=a_shape(8, memory_bytes=2), fits_now=1)
    evaluation = an_evaluation(fragmentation=replace(report, shapes=(twin, near)))
    samples = [(s.name, *s.labels.values()) for f in metric_families(evaluation, OPERATION) for s in f.samples]
    assert max(Counter(samples).values()) == 1


def test_a_mix_of_very_many_shapes_stays_bounded():
    report = an_evaluation().fragmentation
    many = tuple(replace(report.shapes[0], shape=a_shape(1, cpu=1000 * n)) for n in range(1, 400))
    found = values(an_evaluation(fragmentation=replace(report, shapes=many)))
    assert len([key for key in found if key[0] == "gpuwatch_shape_fits"]) == 50


def test_odd_names_survive_the_text_format():
    text = openmetrics(registry(an_evaluation(cluster='we"st\\\n', waterfall_scopes=()), OPERATION)).decode()
    clusters = {s.labels.get("cluster") for f in text_string_to_metric_families(text) for s in f.samples}
    assert 'we"st\\\n' in clusters


def test_the_text_stands_a_strict_parser():
    families = list(text_string_to_metric_families(openmetrics(registry(an_evaluation(), OPERATION)).decode()))
    assert {f.type for f in families} == {"gauge", "counter"}
    assert all(re.fullmatch(r"gpuwatch_[a-z_]+", f.name) and f.documentation for f in families)


def test_promtool_has_nothing_to_say(promtool_program):
    text = generate_latest(registry(an_evaluation(), OPERATION))
    done = subprocess.run(
        [promtool_program, "check", "metrics"], input=text, capture_output=True, timeout=30, check=False
    )
    assert (done.returncode, done.stderr.decode()) == (0, "")
