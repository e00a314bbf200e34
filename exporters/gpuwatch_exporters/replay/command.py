"""gpuwatch-exporter replay: options, start, refresh loop, stop."""

from __future__ import annotations

import argparse
import logging
import math
import signal
import sys
import threading
from datetime import datetime
from pathlib import Path

from gpuwatch.clock import SystemClock
from gpuwatch_exporters.replay.dcgm import Style
from gpuwatch_exporters.replay.frames import Replay
from gpuwatch_exporters.replay.server import ReplayServer
from gpuwatch_exporters.replay.targets import targets_json, write_atomically
from gpuwatch_exporters.replay.worlds import GeneratedWorld, SnapshotWorld, World, trace_world

log = logging.getLogger(__name__)
DEFAULT_SEED = 7
_STOP_SECONDS = 3.0
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `replay`."""
    world = parser.add_argument_group("what is replayed (default: the generated cluster)")
    one = world.add_mutually_exclusive_group()
    one.add_argument("--trace", type=Path, metavar="DIR", help="folder of a public GPU-sharing trace (openb files)")
    one.add_argument("--snapshot", type=Path, metavar="FILE", help="snapshot written by: gpuwatch snapshot record")
    world.add_argument("--workload", help="trace: its job list (default: default)")
    world.add_argument(
        "--load", type=_ratio, help="trace: share of all GPUs that the arrived jobs ask for (default: 0.8)"
    )
    world.add_argument("--policy", help="trace: how jobs are placed (default: best_fit)")
    world.add_argument("--seed", type=int, help=f"generated cluster: default {DEFAULT_SEED}; trace: order of arrival")
    world.add_argument("--scale", type=_count, help="generated: copies of the fleet (default: 1)")
    moves = parser.add_argument_group("how it moves")
    moves.add_argument(
        "--speed",
        type=_amount,
        help="generated: simulated seconds per second, 0 = stand still (default: 1)",
    )
    moves.add_argument(
        "--arrivals-per-minute", type=_amount, help="trace: jobs that come, 0 = stand still (default: 0)"
    )
    moves.add_argument(
        "--refresh-seconds", type=_positive, default=5.0, help="time between two states (default: %(default)s)"
    )
    served = parser.add_argument_group("how it is served")
    served.add_argument(
        "--listen", type=_address, default=("127.0.0.1", 9437), metavar="HOST:PORT",
        help="default: 127.0.0.1:9437; port 0 takes any free one",
    )  # fmt: skip
    served.add_argument("--advertise", metavar="HOST:PORT", help="address in the target list, when not --listen's")
    served.add_argument("--sd-file", type=Path, metavar="FILE", help="write the target list for file_sd_configs here")
    served.add_argument("--nodes", type=_count, metavar="N", help="serve the first N nodes only")
    served.add_argument(
        "--names",
        choices=("old", "new"),
        default="old",
        help="dcgm-exporter names up to 4.8 or since 4.9 (default: old)",
    )
    served.add_argument(
        "--hostname-label", choices=("Hostname", "hostname"), help="default: Hostname with old names, hostname with new"
    )
    parser.set_defaults(usage_error=parser.error)
    parser.add_argument("-v", "--verbose", action="store_true", help="log every request to stderr")


def run(options: argparse.Namespace) -> int:
    """Serves until SIGTERM or SIGINT."""
    options = _settled(options)
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.DEBUG if options.verbose else logging.INFO,
        format="%(levelname)s %(message)s",
    )
    stop = threading.Event()
    for number in _STOP_SIGNALS:
        signal.signal(number, lambda *_: stop.set())
    clock = SystemClock()
    began = clock.now()
    label = options.hostname_label or {"old": "Hostname", "new": "hostname"}[options.names]
    style = Style(names=options.names, hostname_label=label)
    world = _world(options, began)
    replay = Replay(world, style, began, options.nodes)
    host, port = options.listen
    server = ReplayServer(replay, host, port, options.advertise)
    try:
        replay.refresh(began)
        if options.sd_file:
            write_atomically(options.sd_file, targets_json(server.address, server.gpu_nodes()))
        serving = _serve(server)
        log.info("replaying %s", world.told)
        log.info("serving %d nodes on http://%s/ until stopped", len(server.gpu_nodes()), server.address)
        while not stop.wait(options.refresh_seconds):
            _refresh(replay, clock.now())
        server.shutdown()
        serving.join(_STOP_SECONDS)
    finally:
        server.server_close()
    return 0


def _serve(server: ReplayServer) -> threading.Thread:
    """Starts the serving thread. It and the threads it starts are shielded from the stop signals: a signal that the
    system hands to one of them would wake the waiting main thread only at the end of its wait."""
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    try:
        serving.start()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
    return serving


def _refresh(replay: Replay, now: datetime) -> None:
    """A refresh that fails leaves the last frame standing, and is counted and told."""
    try:
        replay.refresh(now)
    except Exception:
        replay.failures += 1
        log.exception("refresh failed; the last state is served on")


# option -> (worlds that it means something to, default)
_WORLD_OPTIONS: dict[str, tuple[tuple[str, ...], object]] = {
    "workload": (("trace",), "default"),
    "load": (("trace",), 0.8),
    "policy": (("trace",), "best_fit"),
    "arrivals_per_minute": (("trace",), 0.0),
    "scale": (("generated",), 1),
    "speed": (("generated",), 1.0),
    "seed": (("generated", "trace"), None),
}


def _settled(options: argparse.Namespace) -> argparse.Namespace:
    """Fills defaults; an option that the chosen world would ignore is a usage error (exit code 2)."""
    world = "trace" if options.trace else "snapshot" if options.snapshot else "generated"
    for name, (worlds, default) in _WORLD_OPTIONS.items():
        if getattr(options, name) is None:
            setattr(options, name, default)
        elif world not in worlds:
            option = "--" + name.replace("_", "-")
            options.usage_error(f"{option} means nothing to a {world} world (only: {', '.join(worlds)})")
    return options


def _world(options: argparse.Namespace, began: datetime) -> World:
    if options.trace:
        return trace_world(
            began,
            folder=options.trace,
            workload=options.workload,
            load=options.load,
            policy=options.policy,
            seed=options.seed,
            arrivals_per_minute=options.arrivals_per_minute,
        )
    if options.snapshot:
        return SnapshotWorld(options.snapshot, began)
    seed = DEFAULT_SEED if options.seed is None else options.seed
    return GeneratedWorld(began, seed=seed, scale=options.scale, speed=options.speed)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT, for example 127.0.0.1:9437")
    return host, int(port)


def _amount(text: str) -> float:
    amount = float(text)
    if not math.isfinite(amount) or amount < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 up")
    return amount


def _positive(text: str) -> float:
    amount = _amount(text)
    if amount == 0:
        raise argparse.ArgumentTypeError("must be above 0")
    return amount


def _ratio(text: str) -> float:
    ratio = _amount(text)
    if ratio > 2:
        raise argparse.ArgumentTypeError(f"{text!r} is a share of all GPUs: 0 to 2")
    return ratio


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return count
