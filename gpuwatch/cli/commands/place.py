"""`gpuwatch place`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpuwatch.cli.app import COMMANDS
from gpuwatch.cli.options import InputOptions, OutputOptions, spread

if TYPE_CHECKING:
    from gpuwatch.model.placement import PlacementRequest

_SHAPE = "Shape of one member"
_CARDS = "Memory of its GPUs"


@COMMANDS.register("place")
def _add(app: typer.Typer) -> None:
    app.command("place")(place)


@spread
def place(
    given: InputOptions,
    out: OutputOptions,
    gpus: Annotated[
        int | None,
        typer.Option(
            "--gpus",
            metavar="N",
            min=0,
            help="GPUs of each member; without it, the fewest of 1, 2, 4, 8 that hold --model-size.",
            rich_help_panel=_SHAPE,
        ),
    ] = None,
    members: Annotated[int, typer.Option("--members", metavar="N", min=1, help="Members that start together.")] = 1,
    milligpu: Annotated[
        int,
        typer.Option(
            "--milligpu",
            metavar="N",
            min=1,
            max=1000,
            help="Thousandths of the GPU; 1000 is all.",
            rich_help_panel=_SHAPE,
        ),
    ] = 1000,
    gpu_model: Annotated[
        list[str] | None,
        typer.Option(
            "--gpu-model", metavar="MODEL", help="Accepted model (may be repeated); else any.", rich_help_panel=_SHAPE
        ),
    ] = None,
    gpu_memory: Annotated[
        str | None,
        typer.Option(
            "--gpu-memory", metavar="BYTES", help="Memory that each GPU must have: 80GiB.", rich_help_panel=_CARDS
        ),
    ] = None,
    model_size: Annotated[
        str | None,
        typer.Option(
            "--model-size",
            metavar="PARAMETERS",
            help="Estimate that memory from a model of this size: 70B.",
            rich_help_panel=_CARDS,
        ),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option("--precision", metavar="NAME", help="fp16 (default), bf16, fp8, fp4.", rich_help_panel=_CARDS),
    ] = None,
    purpose: Annotated[
        str | None,
        typer.Option("--purpose", metavar="NAME", help="inference (default) or training.", rich_help_panel=_CARDS),
    ] = None,
    mig_profile: Annotated[
        str | None,
        typer.Option(
            "--mig-profile",
            metavar="PROFILE",
            help="That many slices of this profile, not GPUs.",
            rich_help_panel=_SHAPE,
        ),
    ] = None,
    cpu: Annotated[
        str | None,
        typer.Option("--cpu", metavar="CPUS", help="CPUs of each member: 8 or 500m.", rich_help_panel=_SHAPE),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option("--memory", metavar="BYTES", help="Memory of each member: 64GiB.", rich_help_panel=_SHAPE),
    ] = None,
    same_nvlink_domain: Annotated[
        bool, typer.Option("--same-nvlink-domain", help="All members within one NVLink domain.")
    ] = False,
    policy: Annotated[str, typer.Option("--policy", metavar="NAME", help="How choices are ranked.")] = "fgd",
    top: Annotated[int, typer.Option("--top", metavar="N", min=1, max=100, help="How many choices.")] = 5,
) -> None:
    """Where a job would go, what that does to fragmentation, and what would make it fit if nothing does.

    Example: gpuwatch place --snapshot now.json --gpus 8 --members 2 --gpu-model H100-80 --cpu 64
    """
    from gpuwatch.cli.exits import choice
    from gpuwatch.cli.inputs import choose, read_input
    from gpuwatch.cli.output import check, emit, finish, partial_reasons
    from gpuwatch.render.reports.placement import placement_report

    check(out)
    asked: dict[str, Any] = {
        "gpus": gpus,
        "members": members,
        "milligpu": milligpu,
        "gpu_model": gpu_model or None,
        "gpu_memory": gpu_memory,
        "model_size": model_size,
        "precision": precision,
        "purpose": purpose,
        "mig_profile": mig_profile,
        "cpu": cpu,
        "memory": memory,
        "same_nvlink_domain": same_nvlink_domain,
        "policy": policy,
        "top": top,
    }
    if choose(given).kind != "server":  # a daemon has its own policies
        choice("--policy", policy, _policies())
    request = _request(asked)
    read = read_input(given, out)
    if read.server is not None:
        # Left-out fields keep the daemon's defaults, so that an older one does not stumble over what was not asked.
        advice, document = read.server.place({key: value for key, value in asked.items() if value is not None})
    else:
        from gpuwatch.engine import place as engine_place
        from gpuwatch.model.settings import AnalysisSettings
        from gpuwatch.render.documents import placement_document

        settings = read.settings or AnalysisSettings()
        advice = engine_place(read.snapshot(), request, settings, read.evaluation.id)
        document = placement_document(advice, read.evaluation)
    emit(placement_report(advice, document), out)
    finish(out, partial_reasons(read.evaluation))


def _policies() -> list[str]:
    from gpuwatch.placement.policy import POLICIES

    return POLICIES.ids()


def _request(asked: dict[str, Any]) -> PlacementRequest:
    """The engine's request; UsageError names what cannot be read or honored, before anything is read."""
    from gpuwatch.cli.exits import UsageError
    from gpuwatch.errors import InputError
    from gpuwatch.placement.what_if.request import check_request, read_request

    try:
        request = read_request(asked)
        check_request(request)
    except InputError as err:
        raise UsageError(err.what, todo=err.todo) from err
    return request
