"""The three names of the first exporters, and that every vocabulary prints none of our own."""

from __future__ import annotations

import pytest
from gpuwatch_exporters.device.compat import COMPATS
from gpuwatch_exporters.device.frame import DeviceFrame
from prometheus_client.parser import text_string_to_metric_families

from tests.exporters.compat.frames import FIRST, SECOND, cut, frame, whole

MIB = 1 << 20


def read(text: str) -> dict[tuple[str, str], float]:
    return {
        (sample.name, sample.labels["uuid"]): sample.value
        for each in text_string_to_metric_families(text)
        for sample in each.samples
    }


def test_percent_and_bytes() -> None:
    found = read(COMPATS.get("nvidia").render(frame()))
    assert found["nvidia_gpu_utilization_gpu", FIRST.uuid] == 87
    assert found["nvidia_gpu_memory_used_bytes", FIRST.uuid] == 61234 * MIB


def test_a_cut_board_counts_once_and_its_utilization_is_unknown() -> None:
    text = COMPATS.get("nvidia").render(frame(cut()))
    assert text.count("\nnvidia_gpu_memory_total_bytes{") == 1
    assert read(text) == {
        ("nvidia_gpu_memory_used_bytes", SECOND.uuid): 61234 * MIB,
        ("nvidia_gpu_memory_total_bytes", SECOND.uuid): 81559 * MIB,
    }


@pytest.mark.parametrize("share", [0.57, 0.29, 1.0, 0.0])
def test_percent_comes_out_whole(share: float) -> None:
    found = read(COMPATS.get("nvidia").render(frame(whole(utilization_ratio=share))))
    assert found["nvidia_gpu_utilization_gpu", FIRST.uuid] == round(100 * share)


def test_a_device_that_is_down_has_no_series() -> None:
    found = read(COMPATS.get("nvidia").render(frame(DeviceFrame(SECOND, up=False, down_reason="hung"))))
    assert found == {}


@pytest.mark.parametrize("vocabulary", COMPATS.ids())
def test_every_vocabulary_prints_no_name_of_ours_and_tells_what_it_is(vocabulary: str) -> None:
    compat = COMPATS.get(vocabulary)
    assert compat.help
    families = list(text_string_to_metric_families(compat.render(frame(whole(), cut()))))
    assert families
    assert not any(each.name.startswith("gpuwatch_") for each in families)
    assert all(each.documentation for each in families)
