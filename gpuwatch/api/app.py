"""The FastAPI application over one DaemonState."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client.exposition import choose_encoder

import gpuwatch
from gpuwatch.api.answers import answer, known
from gpuwatch.api.guard import Guard
from gpuwatch.api.placements import PlacementBody
from gpuwatch.api.problems import install
from gpuwatch.api.reads import reads
from gpuwatch.api.tokens import Tokens
from gpuwatch.daemon.operation import operation
from gpuwatch.daemon.state import DaemonState
from gpuwatch.model.placement import PlacementAdvice, PlacementRequest
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.render.documents import placement_document
from gpuwatch.render.metrics import registry
from gpuwatch.render.plain import plain

Place = Callable[[ClusterSnapshot, PlacementRequest, AnalysisSettings, str], PlacementAdvice]


def create_app(
    state: DaemonState, place: Place, *, tokens: Tokens | None = None, pages: APIRouter | None = None
) -> FastAPI:
    """The application. `place` answers what-ifs; `tokens` None lets everybody read; `pages` are further routes."""
    app = FastAPI(
        title="gpuwatch",
        version=gpuwatch.__version__,
        summary="What a GPU cluster holds, wastes and will want, and what to do about it",
        docs_url=None,  # the usual pages load scripts from outside; /docs here is our own and loads nothing
        redoc_url=None,
    )
    install(app)
    app.include_router(reads(state))
    app.include_router(_writes(state, place))
    app.include_router(_probes(state))
    if pages is not None:
        app.include_router(pages)
    app.add_middleware(Guard, tokens=tokens)
    return app


def _writes(state: DaemonState, place: Place) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["what-if"])

    @router.post("/placements", summary="Where a job would go, what that does to fragmentation, or why it cannot start")
    def placements(request: Request, body: PlacementBody) -> Response:
        """Changes nothing: safe to repeat. Answers on the same snapshot as every read endpoint."""
        found = known(state)
        advice = place(found.snapshot, body.request(), state.settings, found.evaluation.id)
        response = answer(request, found, placement_document(advice, found.evaluation))
        del response.headers["ETag"]  # it speaks of the question too, which an ETag of the evaluation does not
        return response

    return router


def _probes(state: DaemonState) -> APIRouter:
    router = APIRouter(tags=["operation"])

    @router.get("/healthz", summary="The process answers")
    def healthz() -> JSONResponse:
        return JSONResponse({"status": "ok", "version": gpuwatch.__version__})

    @router.get("/readyz", summary="Answers can be trusted now, or every reason why not")
    def readyz() -> JSONResponse:
        now = state.readiness()
        body = {
            "ready": now.ready,
            "reasons": list(now.reasons),
            "snapshot_age_seconds": now.snapshot_age_seconds,
            # What does not make an answer wrong, but is out of order: the store, for example.
            "findings": [plain(each) for each in state.view.findings],
        }
        return JSONResponse(body, 200 if now.ready else 503)

    @router.get("/metrics", summary="Metrics for Prometheus")
    def metrics(request: Request) -> Response:
        view = state.view
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(
            encode(registry(view.evaluation, operation(state, view))),
            media_type=None,
            headers={"Content-Type": content_type},
        )

    return router
