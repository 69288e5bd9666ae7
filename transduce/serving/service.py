"""What each route of the server does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from fastapi import Query, Request, Response
from pydantic_core import to_json

from ..transducer import Transducer
from . import schemas
from .bodies import read_json, read_npz, write_npz
from .files import read_text
from .limits import Limits, RefusedError
from .operators import Operators, Stored
from .regressing import Sizes, condition, predict
from .schemas import CSV, JSON, NPZ
from .served import served
from .workers import Workers


@dataclass(frozen=True, eq=False)
class Service:
    """The server's models and operators, with a method for each route.

    Args:
        models: by name; the first is the default.
        limits: on requests.
        operators: where regressed operators are kept.
        workers: threads that regress and predict.
    """

    models: Mapping[str, Transducer]
    limits: Limits
    operators: Operators
    workers: Workers

    @property
    def sizes(self) -> Sizes:
        """What requests may ask for."""
        return Sizes(answer=self.limits.body_bytes // 8)

    async def regress(
        self,
        request: Request,
        response: Response,
        model: Annotated[str | None, Query(description="used if the body names none")] = None,
    ) -> schemas.Operator:
        """Regress the operator that examples come from."""
        read, name = (
            await _reader(request, self.limits.body_bytes),
            model or next(iter(self.models)),
        )
        stored = self.operators.add(
            await self.workers.run(lambda: condition(self.models, read(), name, self.sizes))
        )
        response.headers["location"] = f"/operators/{stored.id}"
        return _described(stored, self.operators.seconds)

    async def apply(self, id: str, request: Request) -> Response:
        """Predict u for queries."""
        stored, read = self._found(id), await _reader(request, self.limits.body_bytes)
        kind = NPZ if NPZ in request.headers.get("accept", "") else JSON

        def work() -> bytes:
            answer = predict(stored.regressed.operator, read(), self.sizes)
            if kind == JSON:
                return to_json(answer, fallback=np.ndarray.tolist)
            return write_npz({name: value for name, value in answer.items() if name != "warnings"})

        return Response(await self.workers.run(work), media_type=kind)

    async def describe(self, id: str) -> schemas.Operator:
        """What an operator is made of; that counts as a use of it."""
        return _described(self._found(id), self.operators.seconds)

    async def forget(self, id: str) -> None:
        """Forget an operator at once."""
        self.operators.remove(self._found(id).id)

    async def list_models(self) -> list[schemas.Model]:
        """The models that can be named."""
        return [
            schemas.Model(
                name=name,
                dimensions=T.V.dims,
                channels={"v": T.V.channels, "u": T.U.channels},
                bands=T.leaves_out,
                adapts=T.V.adapts,
            )
            for name, T in self.models.items()
        ]

    async def health(self) -> schemas.Health:
        """That the server works; no token is asked for."""
        kept = self.operators
        return schemas.Health(status="ok", operators=len(kept), bytes=kept.bytes)

    def _found(self, id: str) -> Stored:
        stored = self.operators.get(id)
        if stored is None:
            kept = (
                f"they are kept for {self.operators.seconds:g} s after they are last used, "
                "or less if there are many"
            )
            raise RefusedError(
                404,
                f"there is no operator {id[:50]!r}, or no longer: {kept}. Send its examples again.",
            )
        return stored


async def _reader(request: Request, most: int) -> Callable[[], Mapping[str, object]]:
    """A function that parses the body of a request, to be called in a thread."""
    body, kind = (
        await request.body(),
        request.headers.get("content-type", "").partition(";")[0].strip().lower(),
    )
    readers: dict[str, Callable[[bytes, int], Mapping[str, object]]] = {
        JSON: read_json,
        NPZ: read_npz,
        CSV: read_text,
    }
    if kind not in readers:
        raise RefusedError(
            415,
            f"the body is of the type {kind[:50]!r}; expected the header Content-Type: {JSON}, "
            f"{NPZ} or {CSV}.",
        )

    return lambda: readers[kind](body, most)


def _described(stored: Stored, seconds: float) -> schemas.Operator:
    regressed = stored.regressed
    v, u = served(regressed.operator).shapes
    return schemas.Operator(
        id=stored.id,
        model=regressed.model,
        n=v[0],
        v=v,
        u=u,
        bytes=stored.bytes,
        expires_in=seconds,
        milliseconds=regressed.milliseconds,
        warnings=regressed.warnings,
        expected_error=regressed.error,
        baselines=dict(regressed.baselines),
    )
