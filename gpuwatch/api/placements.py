"""The body of a placement request, read strictly, as the engine's PlacementRequest."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from gpuwatch.api.problems import ProblemError
from gpuwatch.errors import InputError
from gpuwatch.model.placement import PlacementRequest, Precision, Purpose
from gpuwatch.model.units import MILLI
from gpuwatch.placement.what_if.request import read_request


class PlacementBody(BaseModel):
    """What to place: `members` members of one shape. Every amount is per member."""

    model_config = ConfigDict(extra="forbid", strict=True, protected_namespaces=())

    gpus: int | None = Field(
        None, ge=0, le=100_000, description="devices of one member; left out with model_size: the fewest of 1, 2, 4, 8"
    )
    members: int = Field(1, ge=1, le=100_000, description="members that must start together")
    milligpu: int = Field(MILLI, ge=1, le=MILLI, description="thousandths of each device; 1000 is a whole one")
    gpu_model: str | list[str] | None = Field(None, description="accepted models; any when left out")
    gpu_memory: str | int | None = Field(None, description='memory that each device must have: bytes, or as "80GiB"')
    model_size: str | int | None = Field(
        None, description='parameters of the model that the job loads, as "70B": the GPU memory is estimated from it'
    )
    precision: Precision | None = Field(None, description="of the model's weights; fp16 when left out")
    purpose: Purpose | None = Field(None, description="what the model is loaded for; inference when left out")
    mig_profile: str | None = Field(None, description='instances of this profile instead of devices, e.g. "1g.10gb"')
    cpu: str | float | None = Field(None, description='CPUs, as 8 or "500m"')
    memory: str | int | None = Field(None, description='bytes, or as "80GiB"')
    same_nvlink_domain: bool = Field(False, description="all members joined by NVLink, on cards of one generation")
    policy: str = Field("fgd", description="how choices are ranked")
    top: int = Field(5, ge=1, le=100, description="how many choices to give")

    def request(self) -> PlacementRequest:
        """The engine's request. ProblemError 422 on an amount that cannot be read or a shape that cannot be."""
        try:
            return read_request(self.model_dump())
        except InputError as err:
            raise ProblemError(422, "bad_request", err.what, todo=err.todo) from err
