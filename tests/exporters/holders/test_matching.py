"""What sources call a device, and which device that is."""

from __future__ import annotations

import pytest
from gpuwatch_exporters.holders.holding import Kind, Ref
from gpuwatch_exporters.holders.matching import Devices, Slot, slots

from tests.exporters.holders.frames import device, frame, instance, mig_uuid, uuid

# Device files are numbered against the order of the indices, as after a slot was emptied.
PLAIN = frame(device(0, 3), device(1, 2), device(2, 1))
MIG = frame(
    device(0, 1),
    device(
        1,
        0,
        [
            instance("7", 70, "1g.10gb", 4, 1),
            instance("8", 80, "1g.10gb+me", 5, 1),
            instance("2", 20, "3g.40gb", 0, 4),
            instance("5/0", 50, "1c.2g.20gb", 6, 2),
            instance("5/1", 51, "1c.2g.20gb", 6, 2),
        ],
    ),
)


def found(devices: Devices, kind: Kind, text: str) -> Slot | None:
    return devices.find(Ref(kind, text))


@pytest.mark.parametrize(
    ("kind", "text", "index"),
    [
        ("text", uuid(1), 1),
        ("text", uuid(1).upper(), 1),
        ("text", uuid(1).removeprefix("GPU-"), 1),
        ("text", f"{uuid(1)}::3", 1),
        ("text", "0000:11:00.0", 1),
        ("text", "00000000:11:00.0", 1),
        ("text", "nvidia2", 1),
        ("text", "nvidia2/vgpu5", 1),
        ("text", f"nvidia.com/gpu={uuid(1)}", 1),
        ("text", "gpu-2", 1),
        ("text", "k8s.gpu.nvidia.com/device=gpu-2", 1),
        ("text", "k8s.gpu.nvidia.com/claim=0f6d2d8e-6f3c-4b27-9d5c-000000000001-gpu-2", 1),
        ("index", "1", 1),
        ("index", "1::2", 1),
        ("number", "2", 1),
        ("minor", "2", 1),
    ],
)
def test_a_whole_gpu(kind: Kind, text: str, index: int) -> None:
    assert found(Devices(PLAIN.devices), kind, text) == Slot(uuid(index))


@pytest.mark.parametrize(
    ("kind", "text", "id_"),
    [
        ("text", mig_uuid(70), "7"),
        ("text", f"{mig_uuid(70)}::1", "7"),
        ("text", f"MIG-{uuid(1)}/7/0", "7"),
        ("text", f"MIG-{uuid(1)}/5/1", "5/1"),
        ("text", "nvidia0/gi7", "7"),
        ("text", "nvidia0/gi7/vgpu1", "7"),
        ("index", "1:0", "7"),
        ("index", "1:2", "2"),
        ("mig", "0/5/1", "5/1"),
        ("mig", "0/2/0", "2"),
        ("text", "gpu-0-mig-1g10gb-19-4", "7"),
        ("text", "gpu-0-mig-1g10gb-me-20-5", "8"),
        ("text", "gpu-0-mig-9-0-4", "2"),
        ("text", "k8s.gpu.nvidia.com/claim=0f6d2d8e-gpu-0-mig-3g40gb-9-0", "2"),
    ],
)
def test_a_mig_instance(kind: Kind, text: str, id_: str) -> None:
    assert found(Devices(MIG.devices), kind, text) == Slot(uuid(1), id_)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("text", uuid(9)),
        ("text", mig_uuid(99)),
        ("text", "0"),  # a number tells itself to nobody
        ("text", ""),
        ("text", "gpu-17"),
        ("text", "gpu-vfio-0"),
        ("text", "gpu-0-mig-1g10gb-19-6"),  # another profile sits there
        ("text", "gpu-0-mig-9-0-1"),
        ("text", f"{uuid(0)}-3"),  # a virtual GPU of another scheduler: its number is drawn, not the device's
        ("index", "7"),
        ("index", "0:0"),
        ("mig", "1/7/0"),
    ],
)
def test_what_is_not_here(kind: Kind, text: str) -> None:
    assert found(Devices(MIG.devices), kind, text) is None


def test_a_device_file_number_is_never_taken_for_an_index_where_files_are_known() -> None:
    devices = Devices(PLAIN.devices)
    assert found(devices, "number", "0") is None
    assert found(devices, "number", "3") == Slot(uuid(0))
    assert found(devices, "index", "0") == Slot(uuid(0))


def test_without_device_files_a_number_is_an_index() -> None:
    assert found(Devices(frame(device(0), device(1)).devices), "number", "1") == Slot(uuid(1))


def test_where_mig_is_on_a_number_means_nothing() -> None:
    """Slurm then counts instances too, and one number could be either."""
    assert found(Devices(MIG.devices), "number", "1") is None
    assert found(Devices(MIG.devices), "number", mig_uuid(20)) == Slot(uuid(1), "2")
    assert found(Devices(MIG.devices), "minor", "1") == Slot(uuid(0))  # the number of a file always means the file


def test_time_slices_of_one_device_are_one_holding() -> None:
    refs = [Ref("text", f"{uuid(0)}::{each}") for each in range(4)] + [Ref("text", "unknown-1")]
    assert list(slots(Devices(PLAIN.devices), refs)) == [
        (refs[0], Slot(uuid(0))),
        (refs[4], None),
    ]
