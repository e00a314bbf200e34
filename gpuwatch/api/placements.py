"""The body of a placement request, read strictly, as the engine's PlacementRequest."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from gpuwatch.api.problems import ProblemError
from gpuwatch.model.catalogue import match
from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.placement import PlacementRequest
from gpuwatch.model.units import MILLI, parse_bytes, parse_millicores

Amount = Annotated[int, Field(ge=0)]


class PlacementBody(BaseModel):
    """What to place: `members` members of one shape. Every amount is per member."""

    model_config = ConfigDict(extra="forbid", strict=True)

    gpus: int = Field(ge=0, le=100_000, description="devices of one member")
    members: int = Field(1, ge=1, le=100_000, description="members that must start together")
    milligpu: int = Field(MILLI, ge=1, le=MILLI, description="thousandths of each device; 1000 is a whole one")
    gpu_model: str | list[str] | None = Field(None, description="accepted models; any when left out")
    mig_profile: str | None = Field(None, description='instances of this profile instead of devices, e.g. "1g.10gb"')
    cpu: str | float | None = Field(None, description='CPUs, as 8 or "500m"')
    memory: str | int | None = Field(None, description='bytes, or as "80GiB"')
    same_nvlink_domain: bool = Field(False, description="all members joined by NVLink")
    policy: str = Field("fgd", description="how choices are ranked")
    top: int = Field(5, ge=1, le=100, description="how many choices to give")

    def request(self) -> PlacementRequest:
        """The engine's request. ProblemError 422 on an amount that cannot be read or a shape that cannot be."""
        if self.gpus > 1 and self.milligpu != MILLI:
            raise ProblemError(422, "bad_request", "milligpu: a member with more than one device takes whole devices")
        if self.mig_profile and self.milligpu != MILLI:
            raise ProblemError(422, "bad_request", "mig_profile: an instance is never shared; leave milligpu out")
        named = [self.gpu_model] if isinstance(self.gpu_model, str) else self.gpu_model or []
        try:
            cpu = parse_millicores(str(self.cpu)) if self.cpu is not None else 0
            memory = parse_bytes(str(self.memory)) if self.memory is not None else 0
        except ValueError as err:
            raise ProblemError(422, "bad_request", str(err)) from err
        shape = DemandShape(
            gpus=self.gpus,
            milligpu_per_gpu=self.milligpu,
            cpu_millicores=cpu,
            memory_bytes=memory,
            gpu_models=tuple(sorted({found.id if (found := match(name)) else name for name in named})),
            mig_profile=self.mig_profile,
        )
        return PlacementRequest(
            shape=shape,
            members=self.members,
            policy=self.policy,
            same_nvlink_domain=self.same_nvlink_domain,
            top=self.top,
        )
