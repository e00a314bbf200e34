"""What-if requests taken by themselves: read from what people write, and which of them make sense."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpuwatch.errors import InputError
from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.placement import PRECISIONS, PURPOSES, ModelSize, PlacementRequest, Precision, Purpose
from gpuwatch.model.spelled import card_ids, profile_name
from gpuwatch.model.units import MILLI, parse_bytes, parse_millicores, parse_parameters

MAX_MEMBERS = 100_000
MAX_TOP = 100
MAX_GPUS = 100_000
MAX_PARAMETERS = 10**15


def read_request(asked: Mapping[str, Any]) -> PlacementRequest:
    """The request that named fields ask for, as the command line and the API take them; a missing one is None.

    gpus, members, milligpu, top: numbers; gpu_model: a name or several; mig_profile, policy, precision, purpose: names;
    same_nvlink_domain: bool; cpu, memory, gpu_memory, model_size: amounts as people write them. InputError names the
    field that cannot be read or honored.
    """
    gpus, model = asked["gpus"], _model(asked)
    if gpus is None and model is None:
        raise InputError(
            "gpus: the number of GPUs of a member is missing",
            todo="give gpus, or model_size and let the number follow from its memory",
        )
    if gpus is not None and gpus > 1 and asked["milligpu"] != MILLI:
        raise InputError("milligpu: a member with more than one device takes whole devices", todo="leave milligpu out")
    profile = None if asked["mig_profile"] is None else profile_name(asked["mig_profile"])
    if profile == "":
        raise InputError("mig_profile: is empty", todo="name a profile such as 1g.10gb, or leave it out")
    if profile and asked["milligpu"] != MILLI:
        raise InputError("mig_profile: an instance is never shared", todo="leave milligpu out")
    given = asked["gpu_model"]
    models = card_ids([given] if isinstance(given, str) else given or [])
    memory = _amount(asked, "gpu_memory", parse_bytes)
    return PlacementRequest(
        shape=DemandShape(
            gpus=1 if gpus is None else gpus,
            milligpu_per_gpu=asked["milligpu"],
            cpu_millicores=_amount(asked, "cpu", parse_millicores) or 0,
            memory_bytes=_amount(asked, "memory", parse_bytes) or 0,
            gpu_models=tuple(sorted(models)),
            mig_profile=profile,
        ),
        members=asked["members"],
        policy=asked["policy"],
        same_nvlink_domain=asked["same_nvlink_domain"],
        top=asked["top"],
        gpu_memory_bytes=memory,
        model=model,
        choose_gpus=gpus is None,
    )


def _model(asked: Mapping[str, Any]) -> ModelSize | None:
    size = _amount(asked, "model_size", parse_parameters)
    if size is None:
        for name in ("precision", "purpose"):
            if asked[name] is not None:
                raise InputError(f"{name}: does nothing without a model", todo="give model_size too, or leave it out")
        return None
    precision: Precision = asked["precision"] or PRECISIONS[0]
    purpose: Purpose = asked["purpose"] or "inference"
    choices: dict[str, tuple[str, ...]] = {"precision": PRECISIONS, "purpose": PURPOSES}
    for name, known in choices.items():
        if asked[name] is not None and asked[name] not in known:
            raise InputError(f"{name}: cannot be {asked[name]!r}", todo=f"choose one of: {', '.join(known)}")
    return ModelSize(parameters=size, precision=precision, purpose=purpose)


def _amount(asked: Mapping[str, Any], name: str, parse: Callable[[str], int]) -> int | None:
    written = asked[name]
    if written is None:
        return None
    try:
        return parse(str(written))
    except ValueError as err:
        raise InputError(f"{name}: {err}", todo="correct the amount") from err


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
        (not 0 <= shape.gpus <= MAX_GPUS, f"gpus is {shape.gpus}, outside 0..{MAX_GPUS}"),
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
