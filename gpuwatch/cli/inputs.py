"""From the input options to an evaluation: in process, or from a running daemon."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpuwatch.cli.exits import UsageError
from gpuwatch.cli.options import InputOptions, OutputOptions
from gpuwatch.cli.output import note, working
from gpuwatch.errors import InputError

if TYPE_CHECKING:
    from gpuwatch.cli.server import Server
    from gpuwatch.config import InputSpec
    from gpuwatch.model.evaluation import Evaluation
    from gpuwatch.model.settings import AnalysisSettings
    from gpuwatch.model.snapshot import ClusterSnapshot

TRACES_VARIABLE = "GPUWATCH_TRACES"
DEMO = "demo"
# Read only when no option names an input; an option always wins.
_VARIABLES = {"server": "GPUWATCH_SERVER", "config": "GPUWATCH_CONFIG"}
# An option that the chosen input would ignore is refused: silence would look like obedience.
_ONLY_WITH = {
    "token_file": "server",
    "timeout": "server",
    "workload": "trace",
    "load": "trace",
    "load_policy": "trace",
    "seed": "trace",
}
_NOT_WITH_DEMO = ("workload", "load", "load_policy")


@dataclass(frozen=True, slots=True)
class Given:
    """One evaluation and the means to ask more of the same world.

    snapshot loads lazily: it is in memory for an input in process, and one more request to a daemon.
    """

    evaluation: Evaluation
    snapshot: Callable[[], ClusterSnapshot]
    settings: AnalysisSettings | None  # None: a daemon keeps its own
    server: Server | None = None
    spec: InputSpec | None = None  # None: evaluated elsewhere


@dataclass(frozen=True, slots=True)
class Chosen:
    """The one input: its option's name and value."""

    kind: str
    at: str


def choose(options: InputOptions) -> Chosen:
    """The one input that was given.

    UsageError names every place tried when there is none, the ones in excess, or an option that it would ignore.
    """
    chosen = _one(options)
    for name in _said(options):
        if _ONLY_WITH.get(name, chosen.kind) != chosen.kind:
            raise UsageError(f"{_option(name)} does nothing with --{chosen.kind}", todo="leave it out")
        if is_demo(chosen) and name in _NOT_WITH_DEMO:
            raise UsageError(f"{_option(name)} does nothing with --trace {DEMO}, which comes with its jobs")
    return chosen


def is_demo(chosen: Chosen) -> bool:
    """True for the generated cluster; a folder that happens to have its name is a trace."""
    return chosen.kind == "trace" and chosen.at == DEMO and not Path(DEMO).is_dir()


def _said(options: InputOptions) -> list[str]:
    return [name for name, unsaid in asdict(InputOptions()).items() if getattr(options, name) != unsaid]


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _one(options: InputOptions) -> Chosen:
    named = {kind: getattr(options, kind) for kind in ("snapshot", "server", "config", "trace")}
    found = [Chosen(kind, str(at)) for kind, at in named.items() if at is not None]
    if len(found) > 1:
        both = " and ".join(f"--{each.kind}" for each in found)
        raise UsageError(f"{both} were given together", todo="give exactly one input")
    if not found:
        found = [Chosen(kind, os.environ[name]) for kind, name in _VARIABLES.items() if os.environ.get(name)]
    if not found:
        variables = ", ".join(f"${name}" for name in _VARIABLES.values())
        raise UsageError(
            "no cluster to look at: no input was given",
            tried=f"--snapshot, --server, --config, --trace, then {variables}; none is set",
            todo="give one, for example --snapshot FILE, --server http://127.0.0.1:9438, --config FILE, --trace demo",
        )
    if len(found) > 1:
        both = " and ".join(f"${_VARIABLES[each.kind]}" for each in found)
        raise UsageError(f"{both} are both set", todo="unset one, or give an option")
    return found[0]


def read_input(options: InputOptions, output: OutputOptions, forecast_models: tuple[str, ...] | None = None) -> Given:
    """Evaluates the given input, by `forecast_models` if any are named, or fetches the daemon's evaluation."""
    chosen = choose(options)
    if chosen.kind == "server":
        if forecast_models is not None:
            raise UsageError(
                "--model does nothing with --server: the daemon has already evaluated",
                todo="set [analysis] forecast_models in its configuration, or read the cluster with --config FILE",
            )
        return _from_server(chosen.at, options, output)
    spec = replace(input_spec(chosen, options), forecast_models=forecast_models)
    from gpuwatch.wiring import evaluate_once

    with working("reading and evaluating", output):
        done = evaluate_once(spec)
    if spec.kind == "trace" and not spec.load_ratio:
        note("the trace's cluster is empty; fill it with --load 0.8", output)
    return Given(evaluation=done.evaluation, snapshot=lambda: done.snapshot, settings=done.settings, spec=spec)


def input_spec(chosen: Chosen, options: InputOptions) -> InputSpec:
    """What wiring evaluates in process for `chosen`."""
    from gpuwatch.config import InputSpec

    if chosen.kind != "trace":
        return InputSpec(kind="snapshot" if chosen.kind == "snapshot" else "config", path=chosen.at)
    if is_demo(chosen):
        return InputSpec(kind="generated", seed=options.seed)
    return InputSpec(
        kind="trace",
        path=str(trace_folder(chosen.at)),
        workload=options.workload,
        load_ratio=options.load,
        policy=options.load_policy,
        seed=options.seed,
    )


def trace_folder(name: str, or_else: str = f", or use --trace {DEMO}") -> Path:
    """The folder of a trace given by path, or by name within the folder that GPUWATCH_TRACES names.

    or_else: what the InputError of an unknown name offers besides.
    """
    root = os.environ.get(TRACES_VARIABLE)
    tried = [Path(name), *([Path(root) / name] if root else [])]
    for folder in tried:
        if folder.is_dir():
            return folder
    raise InputError(
        f"there is no trace {name!r}",
        tried=", ".join(map(str, tried)) + ("" if root else f" (${TRACES_VARIABLE} is not set)"),
        todo=f"give the trace's folder, set ${TRACES_VARIABLE} to the folder that holds it{or_else}",
    )


def _from_server(url: str, options: InputOptions, output: OutputOptions) -> Given:
    from gpuwatch.cli.server import Server

    server = Server(url, timeout_seconds=options.timeout, token_file=options.token_file)
    with working(f"asking {url}", output):
        evaluation = server.evaluation()
    return Given(evaluation=evaluation, snapshot=server.snapshot, settings=None, server=server)
