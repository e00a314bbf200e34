"""The text of a frame: the label contract, one block per family, and nothing that was not handed in."""

from __future__ import annotations

import pytest
from gpuwatch_exporters.device.families import identity, utilization
from gpuwatch_exporters.device.family import (
    DEVICE_LABELS,
    FAMILIES,
    INSTANCE_LABEL,
    NODE_LABELS,
    Family,
    counter,
    gauge,
)
from gpuwatch_exporters.device.frame import DeviceFrame, Frame, Identity, InstanceFrame, Value, Workload
from gpuwatch_exporters.device.render import render_frame
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from gpuwatch.errors import RegistryError

WHO = Identity(index=3, uuid="GPU-1", pci_bus_id="0000:18:00.0", model="NVIDIA H100", serial="165", minor=3)


def device(*values: Value, **changes: object) -> DeviceFrame:
    return DeviceFrame(**{"identity": WHO, "up": True, "values": values, **changes})  # type: ignore[arg-type]


def read(frame: Frame) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for each in text_string_to_metric_families(render_frame(frame))
        for sample in each.samples
    }


def test_a_frame_of_one_device_is_printed_whole() -> None:
    frame = Frame(
        node="n1",
        devices=(device(Value(utilization.UTILIZATION, (), 0.43)),),
        values=(Value(identity.EXPECTED, (), 1),),
        workloads=(Workload(uuid="GPU-1", namespace="ml", pod="p-0", container="c", source="podresources"),),
    )
    text = render_frame(frame)
    assert 'gpuwatch_gpu_utilization_ratio{node="n1",gpu="3",uuid="GPU-1"} 0.43\n' in text
    assert 'gpuwatch_gpus_expected{node="n1"} 1\n' in text
    assert 'gpuwatch_gpu_up{node="n1",gpu="3",uuid="GPU-1"} 1\n' in text
    assert (
        'gpuwatch_gpu_workload_info{node="n1",gpu="3",uuid="GPU-1",namespace="ml",pod="p-0",container="c",'
        'job_id="",user="",source="podresources"} 1\n'
    ) in text
    assert "gpuwatch_gpu_down_info" not in text


def test_families_stand_once_and_sorted_whatever_the_order_of_values() -> None:
    values = [Value(utilization.UTILIZATION, (), 0.1), Value(utilization.MEMORY_CONTROLLER, (), 0.2)]
    other = Identity(index=4, uuid="GPU-2")
    frame = Frame(node="n", devices=(device(*values), device(*reversed(values), identity=other)))
    heads = [line.split()[2] for line in render_frame(frame).splitlines() if line.startswith("# TYPE")]
    assert heads == sorted(set(heads))


def test_a_lost_device_stays_at_zero_with_its_reason() -> None:
    samples = read(Frame(node="n", devices=(device(up=False, down_reason="lost"),)))
    names = {name for name, _ in samples}
    assert names == {"gpuwatch_gpu_info", "gpuwatch_gpu_up", "gpuwatch_gpu_down_info"}
    assert [v for (name, _), v in samples.items() if name == "gpuwatch_gpu_up"] == [0.0]


def test_instances_carry_their_own_label_and_their_own_holders() -> None:
    instance = InstanceFrame(id="3", uuid="MIG-x", profile="1g.10gb", placement_start=0, placement_size=1)
    frame = Frame(
        node="n",
        devices=(device(instances=(instance,)),),
        workloads=(Workload(uuid="GPU-1", instance="3", pod="p"), Workload(uuid="GPU-1", instance="3", pod="q")),
    )
    samples = read(frame)
    assert {dict(labels).get("gpu_instance") for (name, labels), _ in samples.items() if "workload" in name} == {"3"}
    assert [v for (name, _), v in samples.items() if name == "gpuwatch_gpu_workloads"] == [2.0]
    [info] = [dict(labels) for name, labels in samples if name == "gpuwatch_gpu_mig_instance_info"]
    assert (info["profile"], info["placement_start"], info["placement_size"]) == ("1g.10gb", "0", "1")


def test_the_same_holder_told_by_two_sources_lists_once_each_and_twice_from_one_is_one_series() -> None:
    same = Workload(uuid="GPU-1", pod="p", source="podresources")
    samples = read(Frame(node="n", devices=(device(),), workloads=(same, same)))
    assert [v for (name, _), v in samples.items() if name == "gpuwatch_gpu_workloads"] == [1.0]


@given(st.text(), st.text(), st.floats(allow_nan=False))
def test_any_text_and_number_come_back_through_the_parser(node: str, model: str, amount: float) -> None:
    who = Identity(index=0, uuid="GPU-1", model=model)
    frame = Frame(node=node, devices=(DeviceFrame(who, up=True, values=(Value(utilization.UTILIZATION, (), amount),)),))
    samples = read(frame)
    [(found, value)] = [(dict(k), v) for (name, k), v in samples.items() if name == "gpuwatch_gpu_utilization_ratio"]
    assert found["node"] == node
    assert value == amount
    [info] = [dict(labels) for name, labels in samples if name == "gpuwatch_gpu_info"]
    assert info["model"] == model


def test_the_label_contract_of_every_declared_family() -> None:
    """Identity labels belong to the renderer; holders appear in info series alone, so that no value series changes
    when a pod does; names tell unit and kind."""
    families = dict(FAMILIES.items())
    assert len(families) >= 10
    holder = {"namespace", "pod", "container", "job_id", "user"}
    for name, each in families.items():
        assert not set(each.labels) & {*DEVICE_LABELS, *NODE_LABELS, INSTANCE_LABEL}, name
        assert not set(each.labels) & holder or name.endswith("_info"), name
        assert len(set(each.labels)) == len(each.labels), name
        assert each.help.endswith("."), name
        assert name.startswith(("gpuwatch_gpu_", "gpuwatch_gpus_", "gpuwatch_exporter_")), name
        assert not name.endswith(("_percent", "_mhz", "_mib", "_milliwatts", "_ms")), name
        assert (each.kind == "counter") == name.endswith("_total"), name


def test_a_family_is_declared_once_and_named_after_its_kind() -> None:
    with pytest.raises(RegistryError):
        gauge(utilization.UTILIZATION.name, "Again.")
    with pytest.raises(ValueError, match="_total"):
        counter("gpuwatch_gpu_something", "No total.")
    with pytest.raises(ValueError, match="_total"):
        gauge("gpuwatch_gpu_something_total", "A gauge.")
    with pytest.raises(ValueError, match="not a metric name"):
        gauge("gpuwatch_Gpu", "Upper case.")


def test_a_value_with_the_wrong_number_of_labels_is_a_fault_of_the_code() -> None:
    family = Family("gpuwatch_gpu_test_ratio", "gauge", "Not registered.", labels=("a", "b"))
    with pytest.raises(ValueError, match="zip"):
        render_frame(Frame(node="n", devices=(device(Value(family, ("x",), 1)),)))
