"""Lines for a person to paste, each with its undo. gpuwatch runs none of them; every name from data is quoted."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable

from gpuwatch.model.evaluation import Command
from gpuwatch.model.jobs import Job, Member

_NOTE = "gpuwatch does not run this; a person decides"

_SCALE = (
    "kubectl -n {ns} scale {kind} {owner} --current-replicas={replicas} --replicas=0",
    "kubectl -n {ns} scale {kind} {owner} --replicas={replicas}",
)
# owner kind (lower case) -> (line that stops all of it, line that brings it back)
_STOP: dict[str, tuple[str, str]] = {
    "deployment": _SCALE,
    "statefulset": _SCALE,
    "replicaset": _SCALE,
    "replicationcontroller": _SCALE,
    "job": (
        """kubectl -n {ns} patch job {owner} --type=merge -p '{{"spec":{{"suspend":true}}}}'""",
        """kubectl -n {ns} patch job {owner} --type=merge -p '{{"spec":{{"suspend":false}}}}'""",
    ),
    "notebook": (
        "kubectl -n {ns} annotate notebook {owner} kubeflow-resource-stopped=by-hand",
        "kubectl -n {ns} annotate notebook {owner} kubeflow-resource-stopped-",
    ),
}
# Any other owner would start its pods again: it is saved, then deleted.
_SAVE_AND_DELETE = (
    "kubectl -n {ns} get {kind} {owner} -o yaml > {owner}.yaml && kubectl -n {ns} delete {kind} {owner}",
    "kubectl -n {ns} apply -f {owner}.yaml",
)
# Owners that let one of several pods go first: (mark the pod, take the mark away), (one pod fewer, back)
_ONE_FEWER = (
    (
        "kubectl -n {ns} annotate pod {pod} controller.kubernetes.io/pod-deletion-cost=-1000",
        "kubectl -n {ns} annotate pod {pod} controller.kubernetes.io/pod-deletion-cost-",
    ),
    (
        "kubectl -n {ns} scale {kind} {owner} --current-replicas={replicas} --replicas={fewer}",
        "kubectl -n {ns} scale {kind} {owner} --replicas={replicas}",
    ),
)
_CHOOSES_POD = ("deployment", "replicaset")
# A Deployment's ReplicaSet is named after it and a hash in this alphabet; scaling the set alone would be taken back.
_REPLICASET = re.compile(r"^(?P<deployment>.+)-[bcdfghjklmnpqrstvwxz2456789]{8,10}$")
_WITHOUT_PLACE = "jq 'del(.status,.spec.nodeName,.metadata.uid,.metadata.resourceVersion,.metadata.creationTimestamp)'"


def is_slurm(job: Job) -> bool:
    """Whether the job's id is a Slurm job number."""
    return job.id.isdigit()


def namespace(job: Job) -> str:
    """The namespace part of namespace/name, else the tenant, else "default"."""
    head, slash, _ = job.id.partition("/")
    return head if slash else job.tenant or "default"


def pod(member: Member) -> str:
    """The pod's own name."""
    return member.name.rpartition("/")[2]


def mark(job: Job, key: str, text: str) -> tuple[Command, ...]:
    """Leaves a note on the job's pods for their owner: the mildest step, for a person to take first."""
    if is_slurm(job):
        run = f"scontrol update JobId={job.id} AdminComment={shlex.quote(f'gpuwatch {key}: {text}')}"
        return (Command(run=run, undo=f"scontrol update JobId={job.id} AdminComment=", note="tells the owner"),)
    pods = " ".join(shlex.quote(pod(member)) for member in job.members if member.node is not None)
    head = f"kubectl -n {shlex.quote(namespace(job))} annotate pod {pods}"
    return (
        Command(
            run=f"{head} --overwrite {shlex.quote(f'gpuwatch.io/{key}={text}')}",
            undo=f"{head} gpuwatch.io/{key}-",
            note="tells the owner; changes nothing that runs",
        ),
    )


def owner_of(job: Job) -> tuple[str, str]:
    """(kind in lower case, name) of what starts the job's pods; ("", "") for bare pods. Sees through ReplicaSets."""
    kind, _, name = (job.owner or "").partition("/")
    if kind == "ReplicaSet" and (made := _REPLICASET.match(name)):
        return "deployment", made["deployment"]
    return (kind.lower(), name) if kind and name else ("", "")


def stop(job: Job, replicas: int) -> tuple[Command, ...]:
    """Stops the job, and nothing else, in a way that can be taken back.

    `replicas`: members that its owner runs in all. When it runs others too and cannot be told which to end, there is no
    line: the owner's people decide.
    """
    if is_slurm(job):
        note = f"the job starts again from its last checkpoint; {_NOTE}"
        return (Command(run=f"scontrol requeuehold {job.id}", undo=f"scontrol release {job.id}", note=note),)
    kind, owner = owner_of(job)
    if not owner:
        return tuple(_each(job, _remove_pod))
    words = {"ns": shlex.quote(namespace(job)), "kind": shlex.quote(kind), "owner": shlex.quote(owner)}
    if replicas <= len(job.members):
        lines = [_STOP.get(kind, _SAVE_AND_DELETE)]
    elif kind in _CHOOSES_POD and len(job.members) == 1:
        lines = list(_ONE_FEWER)
        words["pod"] = shlex.quote(pod(job.members[0]))
    else:
        return ()
    counts = {"replicas": max(replicas, len(job.members)), "fewer": replicas - 1}
    return tuple(
        Command(run=run.format(**words, **counts), undo=undo.format(**words, **counts), note=_NOTE)
        for run, undo in lines
    )


def move(job: Job, target: str) -> tuple[Command, ...]:
    """Ends the job's pods so that the scheduler starts them elsewhere; expected on node `target`."""
    note = f"expected to start on {target}; {_NOTE}"
    if is_slurm(job):
        nodes = shlex.quote(",".join(sorted({m.node for m in job.members if m.node is not None})))
        steps = (  # held first: Slurm sets the nodes of a job only while it waits
            (f"scontrol requeuehold {job.id}", f"scontrol release {job.id}"),
            (f"scontrol update JobId={job.id} ExcNodeList={nodes}", f"scontrol update JobId={job.id} ExcNodeList="),
            (f"scontrol release {job.id}", f"scontrol hold {job.id}"),
        )
        return tuple(Command(run=run, undo=undo, note=note) for run, undo in steps)
    if job.owner:
        ns = shlex.quote(namespace(job))
        back = f"kubectl -n {ns} get pod -o wide  # its owner has started it again; uncordon the node to let it return"
        return tuple(
            Command(run=f"kubectl -n {ns} delete pod {shlex.quote(pod(m))}", undo=back, note=note)
            for m in job.members
            if m.node is not None
        )
    return tuple(_each(job, lambda j, m: _restart_pod(j, m, note)))


def cordon(node: str) -> Command:
    """Keeps new work off a node."""
    name = shlex.quote(node)
    return Command(run=f"kubectl cordon {name}", undo=f"kubectl uncordon {name}", note="pods without a GPU stay")


def uncordon(node: str) -> Command:
    """Lets work onto the emptied node again."""
    name = shlex.quote(node)
    return Command(run=f"kubectl uncordon {name}", undo=f"kubectl cordon {name}", note="the node takes work again")


def on_other_card(job: Job, product: str, replicas: int) -> tuple[Command, ...]:
    """Asks for another card at the next start; a note to the owner where the pod template cannot be changed alone."""
    kind, owner = owner_of(job)
    if is_slurm(job) or kind not in ("deployment", "statefulset") or replicas > len(job.members):
        return mark(job, "suggested-card", product)
    head = f"kubectl -n {shlex.quote(namespace(job))}"
    selector = {"spec": {"template": {"spec": {"nodeSelector": {"nvidia.com/gpu.product": product}}}}}
    patch = shlex.quote(json.dumps(selector, separators=(",", ":")))
    name = shlex.quote(owner)
    return (
        Command(
            run=f"{head} patch {kind} {name} --type=merge -p {patch}",
            undo=f"{head} rollout undo {kind}/{name}",
            note=f"restarts its pods; other node selectors of the template must fit that card's nodes too; {_NOTE}",
        ),
    )


def _each(job: Job, line: Callable[[Job, Member], Command]) -> list[Command]:
    return [line(job, member) for member in job.members if member.node is not None]


def _remove_pod(job: Job, member: Member) -> Command:
    ns, name = shlex.quote(namespace(job)), shlex.quote(pod(member))
    file = shlex.quote(f"{pod(member)}.json")
    return Command(
        run=f"kubectl -n {ns} get pod {name} -o json | {_WITHOUT_PLACE} > {file} && kubectl -n {ns} delete pod {name}",
        undo=f"kubectl -n {ns} apply -f {file}",
        note=f"nobody starts this pod again by itself; {_NOTE}",
    )


def _restart_pod(job: Job, member: Member, note: str) -> Command:
    removed = _remove_pod(job, member)
    return Command(run=f"{removed.run} && {removed.undo}", undo=removed.undo, note=note)
