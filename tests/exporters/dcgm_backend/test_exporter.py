"""The exporter as it is served: pods of a real gRPC server on DCGM's devices and MIG instances, actions, notes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gpuwatch_exporters.dcgm import collector, exporter
from gpuwatch_exporters.dcgm.exporter import DcgmExporter
from gpuwatch_exporters.holders import HolderSettings
from prometheus_client.parser import text_string_to_metric_families

from tests.exporters.dcgm_backend.conftest import Host
from tests.exporters.holders.kubelet import Kubelet, answer, container, pod, serving

ONE, OTHER = "MIG-11111111-2222-3333-4444-555555555555", "MIG-66666666-7777-8888-9999-000000000000"


@pytest.fixture
def made(host: Host, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes an exporter on the fake host engine, whose clock the test holds."""

    def make(holders: HolderSettings, **changes: Any) -> DcgmExporter:
        monkeypatch.setattr(exporter, "Collector", lambda settings: host.open(**changes))
        return DcgmExporter(host.settings(**changes), holders)

    assert collector.Collector is exporter.Collector
    return make


def holders_of(text: str) -> set[tuple[str, str, str]]:
    """(GPU, instance, pod) of every holder in a page."""
    [family] = [each for each in text_string_to_metric_families(text) if each.name == "gpuwatch_gpu_workload_info"]
    return {(each.labels["gpu"], each.labels.get("gpu_instance", ""), each.labels["pod"]) for each in family.samples}


@pytest.mark.server
def test_pods_are_found_on_devices_and_instances(host: Host, made: Any, tmp_path: Path) -> None:
    host.uuids = {("GPU-bbbb", 1): (ONE,), ("GPU-bbbb", 5): (OTHER,)}
    kubelet = Kubelet()
    kubelet.text = answer(
        pod("whole", container("main", {"nvidia.com/gpu": ["GPU-aaaa"]})),
        pod("slice", container("main", {"nvidia.com/mig-1g.10gb": [OTHER]})),
    )
    settings = HolderSettings(sources=("podresources",), kubelet_socket=tmp_path / "kubelet.sock", wait=10)
    with serving(settings.kubelet_socket, kubelet):
        served = made(settings, compats=("dcgm",))
        text = served.cycle()
        served.close()
    assert holders_of(text) == {("0", "", "whole"), ("1", "5", "slice")}
    assert (
        'GPU_I_ID="5",Hostname="n1",DCGM_FI_DRIVER_VERSION="570.86.15",container="main",namespace="ml",pod="slice"'
        in text
    )
    assert 'uuid="GPU-aaaa"} 0.87' in text  # no holder is in the labels of a value


def test_actions_and_notes(host: Host, made: Any) -> None:
    served = made(HolderSettings(sources=()))
    served.cycle()
    assert served.notes() == ["DCGM at localhost:5555: connected"]
    host.engine.gpus[0].status = 4
    served.cycle()
    assert "GPU GPU-aaaa is down: lost" in served.notes()
    assert "released" in served.actions()["release"]()
    assert 'gpuwatch_exporter_collecting{node="n1"} 0' in served.cycle()
    assert "resumed" in served.actions()["resume"]()
    assert 'gpuwatch_exporter_collecting{node="n1"} 1' in served.cycle()
    served.close()
    served.close()
