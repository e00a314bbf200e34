"""Free room while the steps of a plan are played on a snapshot, one fact at a time: why a step finds no place."""

from __future__ import annotations

from gpuwatch.fit.booking import Booking, node_block_cause
from gpuwatch.model.jobs import Job
from gpuwatch.model.plan import PlanStep


class Room:
    """What is free, and to whom it may go; changed by do() alone."""

    def __init__(self, booking: Booking) -> None:
        self._nodes = booking.nodes
        self._left = {
            (name, gpu.index): free
            for name, booked in booking.nodes.items()
            for gpu, free in zip(booked.node.gpus, booked.free_milligpu, strict=True)
        }
        self._usable = {
            (name, gpu.index): ok
            for name, booked in booking.nodes.items()
            for gpu, ok in zip(booked.node.gpus, booked.usable, strict=True)
        }
        self._models = {(name, gpu.index): gpu.model for name, b in booking.nodes.items() for gpu in b.node.gpus}
        self._cpu = {name: _less(b.cpu_free_millicores, b.cpu_over_millicores) for name, b in booking.nodes.items()}
        self._memory = {name: _less(b.memory_free_bytes, b.memory_over_bytes) for name, b in booking.nodes.items()}

    def fault(
        self, step: PlanStep, job: Job | None, models: dict[tuple[str, int], str | None]
    ) -> tuple[str, str] | None:
        """(code, words) why `step` finds no place, None where it does. models: of the cards that the plan knew."""
        booked = self._nodes.get(step.target)
        if booked is None:
            return "node_gone", f"{step.target} is not in the snapshot"
        cause = node_block_cause(booked.node)
        if cause is not None:
            return "node_blocked", f"{step.target} takes no work: {cause}"
        source = self._nodes.get(step.source or "")
        pool = source.node.pool if source else job.pool if job else None
        if pool is not None and booked.node.pool != pool:
            return "other_pool", f"{step.target} is in pool {booked.node.pool} now, {step.job} stays in {pool}"
        for index in step.target_gpus:
            at = step.target, index
            if at not in self._left or not _accepts(job, self._models[at]) or self._models[at] != models.get(at):
                return (
                    "gpu_changed",
                    f"{step.target} GPU {index} is not the card that the plan knew, or not one for {step.job}",
                )
            if not self._usable[at]:
                return "gpu_unusable", f"{step.target} GPU {index} is unhealthy or in MIG mode"
            if self._left[at] < step.milligpu_per_gpu:
                return "target_taken", (
                    f"{step.target} GPU {index} has {self._left[at]} thousandths free of {step.milligpu_per_gpu}"
                )
        if job is None or step.source == step.target:
            return None
        for what, free, asked in (
            ("cpu", self._cpu[step.target], job.shape.cpu_millicores),
            ("memory", self._memory[step.target], job.shape.memory_bytes),
        ):
            if free is not None and free < asked:
                return f"{what}_lacking", f"{step.target} has {free} of {asked} {_UNITS[what]} free"
        return None

    def do(self, step: PlanStep, job: Job | None) -> None:
        """The step takes what it needs, and gives back what it held."""
        for index in step.target_gpus:
            self._left[step.target, index] -= step.milligpu_per_gpu
        for index in step.source_gpus:
            if step.source is not None and self._usable.get((step.source, index)):
                self._left[step.source, index] += step.milligpu_per_gpu
        if job is None:
            return
        for amounts, asked in ((self._cpu, job.shape.cpu_millicores), (self._memory, job.shape.memory_bytes)):
            _add(amounts, step.target, -asked)
            if step.source is not None:
                _add(amounts, step.source, asked)


def _accepts(job: Job | None, model: str | None) -> bool:
    return job is None or not job.shape.gpu_models or model in job.shape.gpu_models


_UNITS = {"cpu": "millicores", "memory": "bytes"}


def _less(free: int | None, over: int) -> int | None:
    return None if free is None else free - over


def _add(amounts: dict[str, int | None], name: str, amount: int) -> None:
    known = amounts.get(name)
    if known is not None:
        amounts[name] = known + amount
