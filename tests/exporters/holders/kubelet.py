"""A real gRPC server on a unix socket that answers PodResources calls as a kubelet does."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_STRING, _MESSAGE, _INT64 = 9, 11, 3
_ONE, _MANY = 1, 3
# message -> (number, name, type or message, label); the kubelet's pkg/apis/podresources/v1/api.proto
_MESSAGES: dict[str, list[tuple[int, str, int | str, int]]] = {
    "ListPodResourcesResponse": [(1, "pod_resources", "PodResources", _MANY)],
    "PodResources": [
        (1, "name", _STRING, _ONE),
        (2, "namespace", _STRING, _ONE),
        (3, "containers", "Container", _MANY),
    ],
    "Container": [
        (1, "name", _STRING, _ONE),
        (2, "devices", "ContainerDevices", _MANY),
        (3, "cpu_ids", _INT64, _MANY),
        (5, "dynamic_resources", "DynamicResource", _MANY),
    ],
    "ContainerDevices": [
        (1, "resource_name", _STRING, _ONE),
        (2, "device_ids", _STRING, _MANY),
        (3, "topology", "TopologyInfo", _ONE),
    ],
    "TopologyInfo": [(1, "nodes", "NUMANode", _MANY)],
    "NUMANode": [(1, "ID", _INT64, _ONE)],
    "DynamicResource": [
        (2, "claim_name", _STRING, _ONE),
        (3, "claim_namespace", _STRING, _ONE),
        (4, "claim_resources", "ClaimResource", _MANY),
    ],
    "ClaimResource": [
        (1, "cdi_devices", "CDIDevice", _MANY),
        (2, "driver_name", _STRING, _ONE),
        (3, "pool_name", _STRING, _ONE),
        (4, "device_name", _STRING, _ONE),
    ],
    "CDIDevice": [(1, "name", _STRING, _ONE)],
}


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="podresources_v1_test.proto", package="v1", syntax="proto3")
    for name, declared in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, field, kind, label in declared:
            told: dict[str, Any] = {"name": field, "number": number, "label": label}
            told |= {"type": kind} if isinstance(kind, int) else {"type": _MESSAGE, "type_name": f".v1.{kind}"}
            message.field.add(**told)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"v1.{name}")) for name in _MESSAGES}


_CLASSES = _classes()


def pod(name: str, *containers: Any, namespace: str = "ml") -> Any:
    return _CLASSES["PodResources"](name=name, namespace=namespace, containers=containers)


def container(name: str, devices: dict[str, list[str]] | None = None, claims: tuple[dict[str, Any], ...] = ()) -> Any:
    """devices: resource name -> device ids. claims: driver_name, pool_name, device_name, cdi (names) of each."""
    made = [
        _CLASSES["ContainerDevices"](resource_name=resource, device_ids=ids, topology={"nodes": [{"ID": 1}]})
        for resource, ids in (devices or {}).items()
    ]
    resources = [
        {**{k: v for k, v in claim.items() if k != "cdi"}, "cdi_devices": [{"name": n} for n in claim.get("cdi", [])]}
        for claim in claims
    ]
    dynamic = [{"claim_name": "claim", "claim_namespace": "ml", "claim_resources": resources}] if resources else []
    return _CLASSES["Container"](name=name, devices=made, cpu_ids=[0, 1, 2**40], dynamic_resources=dynamic)


def answer(*pods: Any) -> bytes:
    return bytes(_CLASSES["ListPodResourcesResponse"](pod_resources=pods).SerializeToString())


class Kubelet:
    """What the server answers, changed by the test between calls."""

    def __init__(self) -> None:
        self.text = b""
        self.calls = 0
        self.status: grpc.StatusCode | None = None
        self.slow = threading.Event()  # not set: answers are held back until it is
        self.slow.set()

    def list(self, _: bytes, context: grpc.ServicerContext) -> bytes:
        self.calls += 1
        self.slow.wait(30)
        if self.status is not None:
            context.abort(self.status, "told so by the test, " + "at length " * 20)
        return self.text


@contextlib.contextmanager
def serving(socket: Path, kubelet: Kubelet, service: str = "v1.PodResourcesLister") -> Iterator[None]:
    with ThreadPoolExecutor(4) as pool:
        server = grpc.server(pool, options=(("grpc.max_send_message_length", -1),))
        method = grpc.unary_unary_rpc_method_handler(kubelet.list)
        handlers = grpc.method_handlers_generic_handler(service, {"List": method})
        server.add_generic_rpc_handlers((handlers,))
        server.add_insecure_port(f"unix:{socket}")
        server.start()
        try:
            yield
        finally:
            kubelet.slow.set()
            server.stop(None).wait(5)
