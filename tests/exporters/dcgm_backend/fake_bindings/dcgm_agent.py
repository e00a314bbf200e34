"""Stands in for NVIDIA's module of this name: its public functions with their arguments, on a host engine that a test
holds. What the real library refuses (unknown handles, names taken twice, fields not watched) is refused here, too."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import dcgm_structs as structs
from dcgm_fake import LIVE, MOST_ENTITIES, HostEngine

engine = HostEngine.of_two_gpus()
dcgmFieldValueEntityEnumeration_f = ctypes.CFUNCTYPE(  # noqa: N816
    ctypes.c_int32, ctypes.c_uint32, ctypes.c_uint32, ctypes.POINTER(structs.c_dcgmFieldValue_v1), ctypes.c_int32,
    ctypes.c_void_p,
)  # fmt: skip


def dcgmInit() -> int:  # noqa: N802
    return structs.DCGM_ST_OK


def dcgmConnect_v2(ip_address: str, connectParams: Any, version: int = 2) -> Any:  # noqa: N802, N803
    return engine.connect(ip_address, bool(connectParams.addressIsUnixSocket), connectParams.timeoutMs)


def dcgmDisconnect(dcgm_handle: Any) -> int:  # noqa: N802
    return engine.disconnect(dcgm_handle)


def dcgmStartEmbedded(opMode: int) -> Any:  # noqa: N802, N803
    return engine.connect("embedded", False, 0)


def dcgmStopEmbedded(dcgm_handle: Any) -> int:  # noqa: N802
    return engine.disconnect(dcgm_handle)


def dcgmGetAllDevices(dcgm_handle: Any) -> list[int]:  # noqa: N802
    engine.enter("dcgmGetAllDevices", dcgm_handle)
    return sorted(engine.gpus)


def dcgmGetGpuStatus(dcgm_handle: Any, gpuId: int) -> int:  # noqa: N802, N803
    engine.enter("dcgmGetGpuStatus", dcgm_handle)
    return engine.gpu(gpuId).status


def dcgmGetDeviceAttributes(dcgm_handle: Any, gpuId: int, version: int = 3) -> Any:  # noqa: N802, N803
    engine.enter("dcgmGetDeviceAttributes", dcgm_handle)
    gpu = engine.gpu(gpuId)
    if gpu.status == 4:
        raise structs.DCGMError(structs.DCGM_ST_GPU_IS_LOST)
    told = structs.c_dcgmDeviceAttributes_v3()
    who = told.identifiers
    who.uuid, who.deviceName, who.pciBusId = gpu.uuid.encode(), gpu.model.encode(), gpu.pci_bus_id.encode()
    who.serial, who.driverVersion = gpu.serial.encode(), gpu.driver_version.encode()
    return told


def dcgmGetGpuInstanceHierarchy(dcgm_handle: Any) -> Any:  # noqa: N802
    engine.enter("dcgmGetGpuInstanceHierarchy", dcgm_handle)
    told = structs.c_dcgmMigHierarchy_v2()
    for entity, parent, number in engine.hierarchy():
        each = told.entityList[told.count]
        each.entity.entityGroupId, each.entity.entityId = entity
        each.parent.entityGroupId, each.parent.entityId = parent
        each.info.nvmlInstanceId = number
        told.count += 1
    return told


def dcgmGroupCreate(dcgm_handle: Any, type: int, groupName: str) -> Any:  # noqa: A002, N802, N803
    engine.enter("dcgmGroupCreate", dcgm_handle)
    return engine.new_group(groupName, [])


def dcgmGroupAddEntity(dcgm_handle: Any, group_id: Any, entityGroupId: int, entityId: int) -> int:  # noqa: N802, N803
    engine.enter("dcgmGroupAddEntity", dcgm_handle)
    engine.known((entityGroupId, entityId))
    if len(engine.group(group_id)) >= MOST_ENTITIES:
        raise structs.DCGMError(structs.DCGM_ST_MAX_LIMIT)
    engine.group(group_id).append((entityGroupId, entityId))
    return structs.DCGM_ST_OK


def dcgmGroupDestroy(dcgm_handle: Any, group_id: Any) -> int:  # noqa: N802
    engine.enter("dcgmGroupDestroy", dcgm_handle)
    return engine.drop_group(group_id)


def dcgmFieldGroupCreate(dcgm_handle: Any, fieldIds: Sequence[int], fieldGroupName: str) -> Any:  # noqa: N802, N803
    engine.enter("dcgmFieldGroupCreate", dcgm_handle)
    if set(fieldIds) & engine.unknown_fields:
        raise structs.DCGMError(structs.DCGM_ST_BADPARAM)
    return engine.new_group(fieldGroupName, [int(each) for each in fieldIds])


def dcgmFieldGroupDestroy(dcgm_handle: Any, fieldGroupId: Any) -> int:  # noqa: N802, N803
    engine.enter("dcgmFieldGroupDestroy", dcgm_handle)
    return engine.drop_group(fieldGroupId)


def dcgmWatchFields(  # noqa: N802
    dcgm_handle: Any, groupId: Any, fieldGroupId: Any, updateFreq: int, maxKeepAge: float, maxKeepSamples: int  # noqa: N803
) -> int:  # fmt: skip
    engine.enter("dcgmWatchFields", dcgm_handle)
    return engine.watch(groupId, fieldGroupId, updateFreq)


def dcgmUnwatchFields(dcgm_handle: Any, groupId: Any, fieldGroupId: Any) -> int:  # noqa: N802, N803
    engine.enter("dcgmUnwatchFields", dcgm_handle)
    return engine.unwatch(groupId, fieldGroupId)


def dcgmHealthSet_v2(dcgm_handle: Any, groupId: Any, systems: int, updateInterval: int, maxKeepAge: float) -> int:  # noqa: N802, N803
    engine.enter("dcgmHealthSet_v2", dcgm_handle)
    engine.checked = list(engine.group(groupId))
    return structs.DCGM_ST_OK


def dcgmHealthCheck(dcgm_handle: Any, groupId: Any) -> Any:  # noqa: N802, N803
    engine.enter("dcgmHealthCheck", dcgm_handle)
    members = engine.group(groupId)
    told = structs.c_dcgmHealthResponse_v5()
    for entity, system, health in engine.incidents:
        if entity in members and entity in engine.checked:
            each = told.incidents[told.incidentCount]
            each.system, each.health = system, health
            each.entityInfo.entityGroupId, each.entityInfo.entityId = entity
            told.incidentCount += 1
    return told


def dcgmUpdateAllFields(dcgm_handle: Any, waitForUpdate: int) -> int:  # noqa: N802, N803
    engine.enter("dcgmUpdateAllFields", dcgm_handle)
    return structs.DCGM_ST_OK


def dcgmEntitiesGetLatestValues(  # noqa: N802
    dcgmHandle: Any, entities: Sequence[Any], fieldIds: Sequence[int], flags: int  # noqa: N803
) -> Any:  # fmt: skip
    engine.enter("dcgmEntitiesGetLatestValues", dcgmHandle)
    out = (structs.c_dcgmFieldValue_v2 * (len(entities) * len(fieldIds)))()
    places = iter(out)
    for pair in entities:
        entity = (pair.entityGroupId, pair.entityId)
        engine.known(entity)
        for field in fieldIds:
            told = next(places)
            told.entityGroupId, told.entityId = entity
            engine.fill(told, entity, field, live=bool(flags & LIVE))
    return out


def dcgmGetValuesSince_v2(  # noqa: N802
    dcgm_handle: Any, groupId: Any, fieldGroupId: Any, sinceTimestamp: int, enumCB: Callable[..., int], userData: Any  # noqa: N803
) -> int:  # fmt: skip
    engine.enter("dcgmGetValuesSince_v2", dcgm_handle)
    fields, newest = engine.group(fieldGroupId), sinceTimestamp
    for entity in engine.group(groupId):
        found = [
            each for each in engine.events if each[0] == entity and each[1] in fields and each[2] >= sinceTimestamp
        ]
        values = (structs.c_dcgmFieldValue_v1 * len(found))()
        for told, (_, field, at, number) in zip(values, found, strict=True):
            told.fieldId, told.fieldType, told.ts, told.value.i64 = field, ord("i"), at, number
        if found:
            enumCB(*entity, values, len(found), None)
            newest = max(newest, *(each[2] + 1 for each in found))
    return newest
