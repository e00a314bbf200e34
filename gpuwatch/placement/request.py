"""What-if requests taken by themselves: which make sense, and which are bound to one NVLink domain."""

from __future__ import annotations

from gpuwatch.errors import InputError
from gpuwatch.model.placement import PlacementRequest
from gpuwatch.model.units import MILLI

MAX_MEMBERS = 100_000
MAX_TOP = 100
MAX_PARAMETERS = 10**15


def wants_domain(request: PlacementRequest) -> bool:
    """Whether the NVLink condition binds: a single device is in one domain anyway."""
    return request.same_nvlink_domain and request.members * request.shape.gpus > 1


def check_request(request: PlacementRequest) -> None:
    """Raises InputError for a request that no cluster could answer."""
    shape = request.shape
    shares = range(MILLI, MILLI + 1) if shape.gpus != 1 or shape.mig_profile else range(1, MILLI + 1)
    on_cards = request.model is not None or request.gpu_memory_bytes is not None
    faults = (
        (not 1 <= request.members <= MAX_MEMBERS, f"members is {request.members}, outside 1..{MAX_MEMBERS}"),
        (not 1 <= request.top <= MAX_TOP, f"top is {request.top}, outside 1..{MAX_TOP}"),
        (shape.gpus < 0, f"gpus is {shape.gpus}, less than 0"),
        (shape.cpu_millicores < 0, f"cpu is {shape.cpu_millicores} millicores, less than 0"),
        (shape.memory_bytes < 0, f"memory is {shape.memory_bytes} bytes, less than 0"),
        (not shape.gpus and bool(shape.mig_profile), f"0 instances of {shape.mig_profile} are asked for"),
        (not (shape.gpus or shape.cpu_millicores or shape.memory_bytes), "nothing is asked for"),
        (
            shape.gpus > 0 and shape.milligpu_per_gpu not in shares,
            f"{shape.milligpu_per_gpu} thousandths of each of {shape.gpus} device(s): only a single device is shared, "
            f"and then 1..{MILLI}; several devices and MIG instances are whole ({MILLI})",
        ),
        (on_cards and not shape.gpus, "GPU memory is asked for without a GPU"),
        (on_cards and bool(shape.mig_profile), f"an instance of {shape.mig_profile} has the GPU memory that it has"),
        (
            request.model is not None and request.gpu_memory_bytes is not None,
            "GPU memory is given, and a model from which to estimate it as well",
        ),
        (
            request.gpu_memory_bytes is not None and request.gpu_memory_bytes < 1,
            f"gpu_memory is {request.gpu_memory_bytes} bytes, less than 1",
        ),
        (
            request.model is not None and not 1 <= request.model.parameters <= MAX_PARAMETERS,
            f"the model has {request.model.parameters if request.model else 0} parameters, outside 1..10^15",
        ),
        (request.choose_gpus and request.model is None, "the number of GPUs is left open without a model to load"),
        (
            request.choose_gpus and shape.milligpu_per_gpu != MILLI,
            "the number of GPUs is left open, and a share of one is asked for",
        ),
    )
    for wrong, what in faults:
        if wrong:
            raise InputError(f"this placement request cannot be answered: {what}", todo="correct the request")
