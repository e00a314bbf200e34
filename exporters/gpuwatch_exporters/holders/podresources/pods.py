"""The kubelet's answer (v1.ListPodResourcesResponse) as holdings: device plugins and DRA claims.

pods 1 -> name 1, namespace 2, containers 3 -> name 1, devices 2 -> resource name 1, device ids 2
                                            -> claims 5 -> resources 4 -> CDI devices 1 -> name 1
                                                                       -> driver 2, pool 3, device 4
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuwatch_exporters.holders.holding import Holding, LookError, Ref
from gpuwatch_exporters.holders.podresources.wire import WireError, fields

SOURCE = "podresources"
_DRA_DRIVER = "gpu.nvidia.com"
# Devices of these resources are GPUs whatever their id; others (network cards, GPUs passed through to machines, which
# are named by IOMMU group) count only by an id that tells itself.
_GPU_RESOURCE = re.compile(r"nvidia\.com/(?:gpu\b|mig-|shared-gpu)")
_GPU_ID = re.compile(r"(?:GPU|MIG)-[0-9A-Za-z]")
_INDEX = re.compile(r"\d+(?::\d+)?(?:::\d+)?")
_CDI_GPU = re.compile(r"(?:k8s\.gpu\.)?nvidia\.com/(?:gpu|mig|device|claim)=(.+)")


def holdings(answer: memoryview) -> tuple[Holding, ...]:
    """One holding per container with a GPU. Raises LookError bad_answer for what is no such message."""
    try:
        return tuple(each for number, pod in fields(answer) if number == 1 for each in _pod(pod))
    except WireError as err:
        raise LookError("bad_answer", f"the kubelet's answer cannot be read: {err}") from None


def _pod(data: memoryview) -> Iterator[Holding]:
    name = namespace = ""
    containers: list[tuple[str, tuple[Ref, ...]]] = []
    for number, value in fields(data):
        if number == 1:
            name = _str(value)
        elif number == 2:
            namespace = _str(value)
        elif number == 3:
            containers.append(_container(value))
    for container, refs in containers:
        if refs:
            yield Holding(refs, SOURCE, namespace=namespace, pod=name, container=container)


def _container(data: memoryview) -> tuple[str, tuple[Ref, ...]]:
    name, refs = "", []
    for number, value in fields(data):
        if number == 1:
            name = _str(value)
        elif number == 2:
            refs += _plugin_devices(value)
        elif number == 5:
            refs += [ref for n, claimed in fields(value) if n == 4 for ref in _claimed(claimed)]
    return name, tuple(dict.fromkeys(refs))


def _plugin_devices(data: memoryview) -> list[Ref]:
    resource, ids = "", []
    for number, value in fields(data):
        if number == 1:
            resource = _str(value)
        elif number == 2:
            ids.append(value)
    ours = _GPU_RESOURCE.match(resource) is not None
    refs = []
    for text in map(_str, ids):
        if ours and _INDEX.fullmatch(text):
            refs.append(Ref("index", text))
        elif ours or _GPU_ID.match(text):
            refs.append(Ref("text", text))
    return refs


def _claimed(data: memoryview) -> list[Ref]:
    """The device of one claim: by its name at NVIDIA's driver, else by the CDI names that the container got."""
    driver = device = ""
    cdi: list[str] = []
    for number, value in fields(data):
        if number == 1:
            cdi += [_str(text) for n, text in fields(value) if n == 1]
        elif number == 2:
            driver = _str(value)
        elif number == 4:
            device = _str(value)
    if driver == _DRA_DRIVER and device:
        return [Ref("text", device)]
    named = [match[1] for match in map(_CDI_GPU.fullmatch, cdi) if match]
    return [Ref("index" if _INDEX.fullmatch(each) else "text", each) for each in named if each != "all"]


def _str(value: memoryview) -> str:
    return str(value, "utf-8", "replace")
