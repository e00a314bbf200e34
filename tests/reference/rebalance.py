"""Plays a plan on plain dicts, one fact at a time, and says what it breaks. Shares no code with the planner."""

from __future__ import annotations

from collections import Counter, defaultdict
from fnmatch import fnmatchcase

from gpuwatch.model.plan import RebalancePlan
from gpuwatch.model.snapshot import ClusterSnapshot


class World:
    """Where every job of one member is, and what that leaves."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self.nodes = {node.name: node for node in snapshot.nodes}
        self.jobs = {job.id: job for job in snapshot.jobs}
        self.at = {
            job.id: (member.node, tuple(share.gpu_index for share in member.shares))
            for job in snapshot.jobs
            for member in job.members
            if member.node is not None
        }

    def faults(self) -> list[str]:
        """Everything that is taken beyond what there is."""
        held: dict[tuple[str, int], int] = defaultdict(int)
        cpu: dict[str, int] = defaultdict(int)
        memory: dict[str, int] = defaultdict(int)
        for job_id, (name, gpus) in self.at.items():
            shape = self.jobs[job_id].shape
            cpu[name] += shape.cpu_millicores
            memory[name] += shape.memory_bytes
            for gpu in gpus:
                held[name, gpu] += shape.milligpu_per_gpu
        out = [f"{at} holds {amount}" for at, amount in held.items() if amount > 1000]
        for name, node in self.nodes.items():
            if node.cpu_allocatable_millicores is not None and cpu[name] > node.cpu_allocatable_millicores:
                out.append(f"cpu of {name}")
            if node.memory_allocatable_bytes is not None and memory[name] > node.memory_allocatable_bytes:
                out.append(f"memory of {name}")
        return out


def broken_by(plan: RebalancePlan, snapshot: ClusterSnapshot) -> list[str]:
    """What any step of `plan` breaks, in words; [] for a sound plan."""
    world, limits = World(snapshot), plan.limits
    told = list(world.faults())
    moved: list[str] = []
    for step in plan.steps:
        job = world.jobs[step.job]
        target = world.nodes[step.target]
        devices = {gpu.index: gpu for gpu in target.gpus}
        taken = [devices[index] for index in step.target_gpus]
        if not len(set(step.target_gpus)) == len(step.target_gpus) == job.shape.gpus:
            told.append(f"{step.order}: devices {step.target_gpus} for {job.shape.label}")
        if target.block_causes or any(gpu.health == "unhealthy" or gpu.mig_enabled for gpu in taken):
            told.append(f"{step.order}: {step.target} or its device takes no work")
        if job.shape.gpu_models and any(gpu.model not in job.shape.gpu_models for gpu in taken):
            told.append(f"{step.order}: a model that the job does not accept")
        if limits.pools and target.pool not in limits.pools:
            told.append(f"{step.order}: another pool")
        if step.kind == "move":
            told += _broken_move(step, world, limits, taken)
            moved.append(step.job)
            if step.source != step.target:
                # Until it has started anew it holds both places.
                old = world.at[step.job]
                world.jobs["twin"], world.at["twin"] = job, (step.target, step.target_gpus)
                told += [f"{step.order}: {fault}" for fault in world.faults()]
                del world.jobs["twin"], world.at["twin"]
                assert world.at[step.job] == old
        elif step.job in world.at:
            told.append(f"{step.order}: {step.job} runs already")
        world.at[step.job] = step.target, step.target_gpus
        told += [f"{step.order}: {fault}" for fault in world.faults()]
    told += _broken_budgets(plan, world, moved)
    return told


def _broken_move(step, world: World, limits, taken) -> list[str]:
    job, told = world.jobs[step.job], []
    source = world.nodes[world.at[step.job][0]]
    if (step.source, tuple(sorted(step.source_gpus))) != (source.name, tuple(sorted(world.at[step.job][1]))):
        told.append(f"{step.order}: {step.job} is not where the step takes it from")
    old = {gpu.model for gpu in source.gpus if gpu.index in step.source_gpus}
    if not limits.any_model and {gpu.model for gpu in taken} - old:
        told.append(f"{step.order}: another card")
    if source.pool != world.nodes[step.target].pool:
        told.append(f"{step.order}: leaves its pool")
    if job.protected or job.preemptible is False or len(job.members) > 1:
        told.append(f"{step.order}: {step.job} may not move")
    names = [name for name in (job.id, job.name, job.tenant, job.owner) if name]
    if any(fnmatchcase(name, pattern) for name in names for pattern in limits.protect):
        told.append(f"{step.order}: {step.job} is protected by name")
    if limits.tenants and job.tenant not in limits.tenants:
        told.append(f"{step.order}: another tenant's job")
    if job.shape.gpus == 0 and not limits.include_cpu_jobs:
        told.append(f"{step.order}: a job without GPUs")
    return told


def _broken_budgets(plan: RebalancePlan, world: World, moved: list[str]) -> list[str]:
    told = []
    limits = plan.limits
    jobs = [world.jobs[job] for job in moved]
    if len(set(moved)) != len(moved):
        told.append("a job moves twice")
    if len(moved) > plan.allowed_moves or (limits.max_moves is not None and len(moved) > limits.max_moves):
        told.append("too many moves")
    if limits.max_gpu_hours is not None and plan.gpu_hours_lost > limits.max_gpu_hours + 1e-9:
        told.append("too much work lost")
    for owner, count in Counter((job.tenant, job.owner) for job in jobs if job.owner).items():
        all_of_it = sum((job.tenant, job.owner) == owner for job in world.jobs.values())
        most = limits.max_per_owner if limits.max_per_owner is not None else -(-all_of_it // 4)
        if count > most:
            told.append(f"{count} members of {owner} move")
    tenants = Counter(job.tenant for job in jobs)
    if limits.max_per_tenant is not None and any(count > limits.max_per_tenant for count in tenants.values()):
        told.append("a tenant bears too much")
    return told
