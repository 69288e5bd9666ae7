"""The app behind `transduce serve`: examples in, the id of an operator out; queries in, predictions
out.

    POST   /operators               {v, u, x?, x_v?, x_u?, parameters?, model?}
                                    201 {id, model, n, expected_error, ...}
    POST   /operators/{id}/predict  {v, x?, at?, band?, parameters?}
                                    200 {u, low?, high?, milliseconds}
    GET    /operators/{id}, /models, /health, /openapi.json
    DELETE /operators/{id}

Bodies are JSON, npz or CSV, by Content-Type; predictions are JSON or npz, by Accept. Regressions
and predictions run in threads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from starlette.routing import BaseRoute, Match

from ..transducer import Transducer
from ..types import TransduceError
from . import schemas
from .bodies import MalformedError, TooLargeError
from .limits import Guard, Limits, RefusedError
from .operators import Operators
from .schemas import problems
from .service import Service
from .workers import Workers

ExceptionHandler = Callable[[Request, Exception], Awaitable[Response]]
ALWAYS = problems(413, 408, 421, 429, 503)
SWEEP = 10.0  # seconds between looks for operators that expired


def make_app(
    models: Mapping[str, Transducer],
    limits: Limits | None = None,
    operators: Operators | None = None,
    workers: Workers | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> FastAPI:
    """The app that serves models.

    Args:
        models: by name; the first is the default.
        limits: on requests.
        operators: where regressed operators are kept.
        workers: threads that regress and predict.
        clock: seconds, for the rate of requests.
    """
    limits = limits or Limits()
    operators = Operators() if operators is None else operators  # an empty one is false
    service = Service(models, limits, operators, workers or Workers())
    app = FastAPI(
        title="transduce",
        description=__doc__,
        docs_url=None,
        redoc_url=None,
        lifespan=_sweeping(operators),
    )
    app.add_middleware(Guard, limits=limits, clock=clock)
    api = _routes(service)
    app.get("/health", responses=ALWAYS)(service.health)
    handlers: dict[int | type[Exception], ExceptionHandler] = {
        RefusedError: _refused,
        TransduceError: _unfit,
        405: _not_allowed([*app.routes, *api.routes]),
        Exception: _failed,
    }
    for kind, answer in handlers.items():
        app.add_exception_handler(kind, answer)
    app.include_router(api)
    return app


def _routes(service: Service) -> APIRouter:
    """The routes that need the token, if there is one. `Guard` asks for it; here it is
    described."""
    locked = [] if service.limits.token is None else [Depends(HTTPBearer(auto_error=False))]
    api = APIRouter(dependencies=locked, responses=ALWAYS | (problems(401) if locked else {}))
    api.post(
        "/operators",
        status_code=201,
        responses=problems(400, 415, 422),
        openapi_extra=schemas.examples(list(service.models)),
    )(service.regress)
    api.post(
        "/operators/{id}/predict",
        response_model=schemas.Prediction,
        responses=problems(400, 404, 415, 422) | schemas.PREDICTED,
        openapi_extra=schemas.QUERIES,
    )(service.apply)
    api.get("/operators/{id}", responses=problems(404))(service.describe)
    api.delete("/operators/{id}", status_code=204, responses=problems(404))(service.forget)
    api.get("/models")(service.list_models)
    return api


def _sweeping(operators: Operators) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """Drops expired operators while the app runs, even without requests."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async def sweep() -> None:
            while True:
                await asyncio.sleep(SWEEP)
                operators.sweep()

        task = asyncio.create_task(sweep())
        yield
        task.cancel()

    return lifespan


async def _refused(_: Request, refused: Exception) -> Response:
    assert isinstance(refused, RefusedError)
    return JSONResponse({"detail": refused.detail}, refused.status, refused.headers)


async def _unfit(_: Request, error: Exception) -> Response:
    status = (
        413
        if isinstance(error, TooLargeError)
        else 400
        if isinstance(error, MalformedError)
        else 422
    )
    return JSONResponse({"detail": str(error)}, status)


def _not_allowed(routes: list[BaseRoute]) -> ExceptionHandler:
    """An answer that names the methods of all routes with this path. Starlette names those of one
    route only."""

    async def answer(request: Request, _: Exception) -> Response:
        methods = {
            method
            for route in routes
            if route.matches(request.scope)[0] != Match.NONE
            for method in getattr(route, "methods", ())
        }
        allowed = ", ".join(sorted(methods))
        return JSONResponse(
            {"detail": f"{request.method} is not answered here; expected {allowed}."},
            405,
            {"allow": allowed},
        )

    return answer


async def _failed(_: Request, error: Exception) -> Response:
    return JSONResponse(
        {"detail": "the server failed at this request, and goes on. Its log says why."}, 500
    )
