"""The app behind `transduce serve`: examples in, the id of an operator out; queries in, predictions
out.

    POST   /operators               {v, u, x?, model?}        201 {id, model, n, ...}
    POST   /operators/{id}/predict  {v, x?, at?, band?}       200 {u, low?, high?, milliseconds}
    GET    /operators/{id}, /models, /health, /openapi.json
    DELETE /operators/{id}

Bodies are JSON or npz, by Content-Type; predictions are either, by Accept. Regressions and
predictions run in threads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from pydantic_core import to_json
from starlette.routing import BaseRoute, Match

from ..transducer import Transducer
from ..types import TransduceError
from . import schemas
from .bodies import MalformedError, TooLargeError, read_json, read_npz, write_npz
from .limits import Guard, Limits, RefusedError
from .operators import Operators, Stored
from .regressing import Sizes, condition, predict
from .schemas import JSON, NPZ, problems
from .workers import Workers

ExceptionHandler = Callable[[Request, Exception], Awaitable[Response]]
SWEEP = 10.0  # seconds between looks for operators that expired


def make_app(
    models: Mapping[str, Transducer],
    limits: Limits | None = None,
    operators: Operators | None = None,
    workers: Workers | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> FastAPI:
    """The app that serves these models; the first is the default."""
    limits, workers = limits or Limits(), workers or Workers()
    operators = Operators() if operators is None else operators  # an empty one is false
    default = next(iter(models))
    sizes = Sizes(answer=limits.body_bytes // 8)
    app = FastAPI(
        title="transduce",
        description=__doc__,
        docs_url=None,
        redoc_url=None,
        lifespan=_sweeping(operators),
    )
    app.add_middleware(Guard, limits=limits, clock=clock)
    locked = (
        [] if limits.token is None else [Depends(HTTPBearer(auto_error=False))]
    )  # for the description: `Guard` asks for it
    always = problems(413, 408, 421, 429, 503)
    api = APIRouter(dependencies=locked, responses=always | (problems(401) if locked else {}))

    def found(id: str) -> Stored:
        stored = operators.get(id)
        if stored is None:
            kept = (
                f"they are kept for {operators.seconds:g} s after they are last used, "
                "or less if there are many"
            )
            raise RefusedError(
                404,
                f"there is no operator {id[:50]!r}, or no longer: {kept}. Send its examples again.",
            )
        return stored

    @api.post(
        "/operators",
        status_code=201,
        responses=problems(400, 415, 422),
        openapi_extra=schemas.examples(list(models)),
    )
    async def regress(
        request: Request,
        response: Response,
        model: Annotated[str | None, Query(description="used if the body names none")] = None,
    ) -> schemas.Operator:
        """Regress the operator that examples come from."""
        read = await _reader(request, limits.body_bytes)
        stored = operators.add(
            await workers.run(lambda: condition(models, read(), model or default, sizes))
        )
        response.headers["location"] = f"/operators/{stored.id}"
        return _described(stored, operators.seconds)

    @api.post(
        "/operators/{id}/predict",
        response_model=schemas.Prediction,
        responses=problems(400, 404, 415, 422) | schemas.PREDICTED,
        openapi_extra=schemas.QUERIES,
    )
    async def apply(id: str, request: Request) -> Response:
        """Predict u for queries."""
        stored, read = found(id), await _reader(request, limits.body_bytes)
        kind = NPZ if NPZ in request.headers.get("accept", "") else JSON

        def work() -> bytes:
            answer = predict(stored.regressed.operator, read(), sizes)
            if kind == JSON:
                return to_json(answer, fallback=np.ndarray.tolist)
            return write_npz({name: value for name, value in answer.items() if name != "warnings"})

        return Response(await workers.run(work), media_type=kind)

    @api.get("/operators/{id}", responses=problems(404))
    async def describe(id: str) -> schemas.Operator:
        """What an operator is made of; that counts as a use of it."""
        return _described(found(id), operators.seconds)

    @api.delete("/operators/{id}", status_code=204, responses=problems(404))
    async def forget(id: str) -> None:
        """Forget an operator at once."""
        operators.remove(found(id).id)

    @api.get("/models")
    async def list_models() -> list[schemas.Model]:
        """The models that can be named."""
        return [
            schemas.Model(
                name=name,
                dimensions=T.V.dims,
                channels={"v": T.V.channels, "u": T.U.channels},
                bands=T.leaves_out,
            )
            for name, T in models.items()
        ]

    @app.get("/health", responses=always)
    async def health() -> schemas.Health:
        """That the server works; no token is asked for."""
        return schemas.Health(status="ok", operators=len(operators), bytes=operators.bytes)

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


def _sweeping(operators: Operators) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """For as long as the app runs, what expires is forgotten even if nobody asks for anything."""

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


async def _reader(request: Request, most: int) -> Callable[[], Mapping[str, object]]:
    """What reads the fields of a request's body, once it is called in a thread."""
    body, kind = (
        await request.body(),
        request.headers.get("content-type", "").partition(";")[0].strip().lower(),
    )
    if kind not in (JSON, NPZ):
        raise RefusedError(
            415,
            f"the body is of the type {kind[:50]!r}; expected the header Content-Type: {JSON}, or "
            f"{NPZ}.",
        )

    return lambda: read_json(body, most) if kind == JSON else read_npz(body, most)


def _described(stored: Stored, seconds: float) -> schemas.Operator:
    regressed, examples = stored.regressed, stored.regressed.operator.examples
    return schemas.Operator(
        id=stored.id,
        model=regressed.model,
        n=len(examples),
        v=list(examples.v.shape),
        u=list(examples.u.shape),
        bytes=stored.bytes,
        expires_in=seconds,
        milliseconds=regressed.milliseconds,
        warnings=regressed.warnings,
    )


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
    """Starlette names the methods of one route alone; here those of all routes that the path
    fits."""

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
