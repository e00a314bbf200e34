"""GET endpoints: one per document of render.documents, and the two whole values behind them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response

from gpuwatch.api.answers import answer, evaluation_adapter, known, not_modified
from gpuwatch.api.paging import DEFAULT_LIMIT, MAX_LIMIT, page_of
from gpuwatch.api.problems import ProblemError
from gpuwatch.daemon.state import DaemonState
from gpuwatch.model.codec import dump_snapshot
from gpuwatch.render.documents import (
    forecasts_document,
    fragmentation_document,
    recommendations_document,
    waterfall_document,
)
from gpuwatch.render.select import Wanted, keep, ranked

Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="most items in one answer")]
Cursor = Annotated[str | None, Query(description="the `next` of the answer before")]
Names = Annotated[list[str] | None, Query()]


def _scope_key(item: dict[str, Any]) -> str:
    return f"{item.get('pool')}\0{item.get('gpu_model')}"


def _target_key(item: dict[str, Any]) -> str:
    return "\0".join(str(part) for part in item["target"].values())


def _no_other_parameters(request: Request) -> None:
    """A filter that nobody reads would answer with everything and look as if it had been applied."""
    names = {each.alias for each in request.scope["route"].dependant.query_params}
    for other in sorted(set(request.query_params) - names):
        told = f"known here: {', '.join(sorted(names))}" if names else "none is known here"
        raise ProblemError(400, "unknown_parameter", f"no query parameter is called {other!r}; {told}")


def reads(state: DaemonState) -> APIRouter:
    """The router of all read endpoints over `state`."""
    router = APIRouter(prefix="/api/v1", tags=["read"], dependencies=[Depends(_no_other_parameters)])

    @router.get("/evaluation", summary="Everything that one evaluation says, as one value")
    def evaluation(request: Request) -> Response:
        found = known(state)
        body: bytes = evaluation_adapter().dump_json(found.evaluation)
        return not_modified(request, found) or Response(body, media_type="application/json", headers=found.headers)

    @router.get("/snapshot", summary="The snapshot behind the evaluation, as every command accepts it")
    def snapshot(request: Request) -> Response:
        found = known(state)
        unchanged = not_modified(request, found)
        return unchanged or Response(
            dump_snapshot(found.snapshot), media_type="application/json", headers=found.headers
        )

    @router.get("/waterfall", summary="Installed, healthy, schedulable, allocated and active GPUs per scope")
    def waterfall(request: Request, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Response:
        found = known(state)
        return answer(request, found, page_of(waterfall_document(found.evaluation), _scope_key, limit, cursor))

    @router.get("/fragmentation", summary="The fragmentation index, its causes, and which shapes fit now")
    def fragmentation(request: Request, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Response:
        found = known(state)
        return answer(request, found, page_of(fragmentation_document(found.evaluation), _scope_key, limit, cursor))

    @router.get("/forecasts", summary="Demand ahead, per pool and kind, with intervals")
    def forecasts(request: Request, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Response:
        found = known(state)
        return answer(request, found, page_of(forecasts_document(found.evaluation), _target_key, limit, cursor))

    @router.get("/recommendations", summary="Ranked advice, and what no rule would judge")
    def recommendations(
        request: Request,
        limit: Limit = DEFAULT_LIMIT,
        cursor: Cursor = None,
        kind: Names = None,
        pool: Names = None,
        tenant: Names = None,
        node: Names = None,
        gpu_model: Names = None,
        min_severity: Literal["info", "warning", "critical"] = "info",
        sort: str | None = None,
    ) -> Response:
        found = known(state)
        wanted = Wanted(
            rules=tuple(kind or ()),
            pools=tuple(pool or ()),
            tenants=tuple(tenant or ()),
            nodes=tuple(node or ()),
            gpu_models=tuple(gpu_model or ()),
            min_severity=min_severity,
        )
        chosen = ranked(keep(found.evaluation.recommendations, wanted), sort)
        document = recommendations_document(found.evaluation, chosen)
        return answer(request, found, page_of(document, lambda item: str(item["id"]), limit, cursor))

    @router.get("/recommendations/{id_}", summary="One piece of advice with its evidence")
    def recommendation(request: Request, id_: str) -> Response:
        found = known(state)
        chosen = tuple(each for each in found.evaluation.recommendations if each.id == id_)
        if not chosen:
            raise ProblemError(404, "no_such_recommendation", f"the current evaluation gives no advice {id_!r}")
        return answer(request, found, recommendations_document(found.evaluation, chosen, ()))

    return router
