"""The page's server: what it looks like from `static/`, what it says from the modules of its tabs.

Everything a browser loads comes from here, which the policy in the headers makes the browser hold
to. Errors are the library's own, as {"detail": "..."}."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import torch
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles

from ..serving.limits import App, Guard, Limits, Message, Receive, Scope, Send
from ..types import TransduceError
from . import adr, burgers, data, images
from .models import model

STATIC = Path(__file__).parent / "static"
HEADERS = {
    "content-security-policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
        "'none'; object-src 'none'"
    ),
    "cache-control": "no-cache",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
LIMITS = Limits(body_bytes=48 * 2**20, bodies_bytes=96 * 2**20, rate=400.0)


def make_app() -> App:
    """The page and its server, behind its limits."""
    app = FastAPI(title="transduce play", docs_url=None, redoc_url=None, openapi_url=None)

    @app.exception_handler(TransduceError)
    async def refused(request: Request, error: TransduceError) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 400)

    @app.exception_handler(RequestValidationError)
    async def misread(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:]) or "the request"
        return JSONResponse({"detail": f"{where}: {first['msg']}."}, 422)

    for path, answer in ROUTES.items():
        app.post(f"/api/{path}")(answer)

    @app.get("/sample.{kind}")
    def sample(kind: Literal["npz", "csv"]) -> Response:
        return Response(data.sample(kind), media_type="application/octet-stream")

    app.mount("/", StaticFiles(directory=STATIC, html=True))
    return _headed(Guard(app, LIMITS))


def _headed(app: App) -> App:
    """The app, every answer with HEADERS."""

    async def headed(scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message["headers"],
                    *((name.encode(), value.encode()) for name, value in HEADERS.items()),
                ]
            await send(message)

        await app(scope, receive, sent)

    return headed


ROUTES: dict[str, Callable[..., dict[str, object]]] = {
    "adr/examples": adr.show,
    "adr/predict": adr.predict,
    "adr/influence": adr.influences,
    "adr/outliers": adr.outliers,
    "burgers/predict": burgers.predict,
    "burgers/examples": burgers.show,
    "images/digits": images.digits,
    "images/classify": images.classify,
    "data/regress": data.regress,
}


def warm_up() -> None:
    """Have the first prediction ready when the page opens. One thread: a prediction is a matter of
    milliseconds, in which threads would mostly wait for each other."""
    torch.set_num_threads(1)
    asked = adr.Asked(hidden=adr.Hidden(seed=1), examples=tuple(range(30)), v=(0.0,) * adr.POINTS)
    adr.influences(asked)
    adr.predict(asked)


def warm_the_rest() -> None:
    """Have the other models ready soon after, while the page is looked at. Not a daemon: what torch
    does must come to an end."""
    threading.Thread(target=_load_the_rest).start()


def _load_the_rest() -> None:
    model("general")
    model("images")
    burgers.predict(burgers.Stirred(fluid=burgers.Fluid(seed=1)))
