"""Builds everything once: from a configuration or an input, to one evaluation or to a daemon that serves."""

from __future__ import annotations

from gpuwatch.wiring.once import Evaluated, describe_sources, evaluate_once
from gpuwatch.wiring.serving import Served, build_daemon, demo_daemon, run

__all__ = ["Evaluated", "Served", "build_daemon", "demo_daemon", "describe_sources", "evaluate_once", "run"]
