"""Why a feature gives nothing on a device where no call says so."""

from __future__ import annotations

import pynvml as nv
from gpuwatch_exporters.device.frame import DeviceFrame

from tests.exporters.nvml.collector.stage import Stage, labels


def reasons(device: DeviceFrame) -> dict[str, str]:
    """Features that are off, and why."""
    return {each[0]: each[1] for each in labels(device, "gpuwatch_gpu_feature_off_info")}


def test_the_reason_is_told(stage: Stage) -> None:
    stage.say("gpus 2", "mig 1 1g.10gb", "field 0 91 * uint 0")
    frame = stage.cycle()
    off = [dict(labels(each, "gpuwatch_gpu_feature_off_info")) for each in frame.devices]  # type: ignore[arg-type]
    assert {"mig_instances": "mig_disabled", "mig_room": "mig_disabled", "gpm": "first_sample"}.items() <= off[
        0
    ].items()
    assert {off[0][name] for name in ("nvlink", "nvlink_links", "nvlink_fec", "nvlink_switches")} == {"no_nvlink"}
    assert off[0]["fans"] == "no_fans"
    assert (off[1]["utilization"], off[1]["media"]) == ("mig_enabled", "mig_enabled")
    assert not {"mig_instances", "mig_room", "nvlink"} & off[1].keys()
    assert "no_value" not in {*off[0].values(), *off[1].values()}
    stage.say("gpus 2", "err 0 nvmlDeviceGetMigMode 3", "err 0 nvmlDeviceGetNvLinkState 13", "field 0 91 * error 3")
    stage.restart()
    first = reasons(stage.cycle().devices[0])
    assert (first["mig_room"], first["nvlink"]) == ("not_supported", "driver_too_old")


def test_switched_off_the_chips_counters_are_never_touched(stage: Stage) -> None:
    stage.say("gpus 2", "mig 1 1g.10gb")
    stage.restart(disabled=frozenset({"gpm", "gpm_parts"}))
    stage.cycle()
    stage.cycle()
    assert not [name for name in nv._nvmlGetFunctionPointer_cache if "Gpm" in name]
    stage.restart()
    stage.cycle()
    assert "nvmlGpmSampleGet" in nv._nvmlGetFunctionPointer_cache
