"""What people write becomes a request, or an error that names the field."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuwatch.errors import InputError
from gpuwatch.model.placement import ModelSize, PlacementRequest
from gpuwatch.model.units import GIB
from gpuwatch.placement.what_if.request import check_request, read_request
from tests.builders import a_shape

LEFT_OUT = dict.fromkeys(
    ("gpus", "gpu_model", "gpu_memory", "model_size", "precision", "purpose", "mig_profile", "cpu", "memory")
)
DEFAULTS = {**LEFT_OUT, "members": 1, "milligpu": 1000, "same_nvlink_domain": False, "policy": "fgd", "top": 5}


def read(**asked):
    return read_request(DEFAULTS | asked)


def test_amounts_are_read_as_people_write_them():
    request = read(gpus=2, cpu="500m", memory="64GiB", gpu_memory="80GiB", gpu_model=["T4", "NVIDIA H200"])
    assert request.shape == a_shape(2, cpu=500, memory_bytes=64 * GIB, gpu_models=("H200-141", "T4"))
    assert request.gpu_memory_bytes == 80 * GIB


def test_names_are_read_as_people_write_them():
    assert read(gpus=1, gpu_model="a100").shape.gpu_models == ("A100-40", "A100-80")
    assert read(gpus=1, mig_profile="nvidia.com/mig-1g.10gb").shape.mig_profile == "1g.10gb"


def test_the_number_of_gpus_may_follow_from_a_model():
    request = read(model_size="70B")
    assert request.model == ModelSize(parameters=70 * 10**9, precision="fp16", purpose="inference")
    assert (request.choose_gpus, request.shape.gpus) == (True, 1)


FAULTS = {
    "gpus: the number": {},
    "milligpu: a member with more": {"gpus": 2, "milligpu": 500},
    "mig_profile: an instance": {"gpus": 1, "mig_profile": "1g.10gb", "milligpu": 500},
    "mig_profile: is empty": {"gpus": 1, "mig_profile": " "},
    "precision: does nothing": {"gpus": 1, "precision": "fp8"},
    "purpose: does nothing": {"gpus": 1, "purpose": "training"},
    "precision: cannot be 'int8'": {"model_size": "7B", "precision": "int8"},
    "cpu: not an amount": {"gpus": 1, "cpu": "-4"},
    "gpu_memory: not an amount": {"gpus": 1, "gpu_memory": "nan"},
    "model_size: not a number": {"model_size": "1e30"},
}


@pytest.mark.parametrize(("told", "asked"), FAULTS.items(), ids=FAULTS)
def test_what_cannot_be_read_names_the_field(told, asked):
    with pytest.raises(InputError, match=told) as caught:
        read(**asked)
    assert caught.value.todo


PLAIN = PlacementRequest(shape=a_shape())
SENSELESS = {
    "members is 0,": replace(PLAIN, members=0),
    "top is 101,": replace(PLAIN, top=101),
    "gpus is 100001,": replace(PLAIN, shape=a_shape(100_001)),
    "gpus is -1,": replace(PLAIN, shape=a_shape(-1)),
    "nothing is asked for": replace(PLAIN, shape=a_shape(0, cpu=0)),
    "0 instances of": replace(PLAIN, shape=a_shape(0, mig_profile="1g.10gb")),
    "500 thousandths of each of 2": replace(PLAIN, shape=a_shape(2, milligpu=500)),
    "GPU memory is asked for without": replace(PLAIN, shape=a_shape(0), gpu_memory_bytes=GIB),
    "gpu_memory is 0 bytes": replace(PLAIN, gpu_memory_bytes=0),
    "a model from which": replace(PLAIN, gpu_memory_bytes=GIB, model=ModelSize(parameters=1)),
    "the model has 0": replace(PLAIN, model=ModelSize(parameters=0)),
    "left open without a model": replace(PLAIN, choose_gpus=True),
}


@pytest.mark.parametrize(("told", "request_"), SENSELESS.items(), ids=SENSELESS)
def test_what_no_cluster_could_answer_is_refused(told, request_):
    with pytest.raises(InputError, match=told):
        check_request(request_)
    check_request(PLAIN)
