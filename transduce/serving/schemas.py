"""What the OpenAPI description says of bodies and answers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field, WithJsonSchema

from .regressing import Sizes

Schema = dict[str, Any]  # JSON schema, and what OpenAPI adds to it
JSON, NPZ, CSV = "application/json", "application/x-npz", "text/csv"
MEANINGS = {
    400: "The body cannot be read.",
    401: "The token is missing or wrong.",
    404: "There is no such operator, or no longer: send its examples again.",
    408: "The body did not come in time.",
    413: "The body, the operator or the answer is too large.",
    415: "The body is neither JSON nor npz nor CSV.",
    421: "The Host header names another machine.",
    422: "What the body says does not fit the model.",
    429: "Too many requests; Retry-After says when to come again.",
    503: "Too much is under way; Retry-After says when to come again.",
}


def _nested(levels: int) -> Schema:
    return (
        {"type": "array", "minItems": 1, "items": _nested(levels - 1)}
        if levels
        else {"type": "number"}
    )


FUNCTIONS = {
    "anyOf": [_nested(levels) for levels in (1, 2, 3, 4)],
    "description": "(n, points), (n, channels, points), (n, x, y) or (n, channels, x, y); for "
    "models that adapt, also (n, numbers) with fewer than 8 numbers, or (n,)",
}
POSITIONS = {
    "anyOf": [_nested(1), _nested(2)],
    "description": "in [0, 1]: (points,), or (points, 2) in two dimensions; for models that adapt, "
    "(points,) in your units, ascending or descending",
}
OWN_POSITIONS = {
    **_nested(1),
    "description": "positions of the points of v or of u alone, in place of x; for models that "
    "adapt",
}
PARAMETERS = {
    "anyOf": [_nested(1), _nested(2)],
    "description": "numbers that come with each function, (n,) or (n, p); for models that adapt",
}
AT = {
    "anyOf": [{"type": "integer", "minimum": 1, "maximum": Sizes.function}, _nested(1), _nested(2)],
    "description": "a number of points, in 2-D or two, or positions",
}
BAND = {
    "type": "number",
    "exclusiveMinimum": 0,
    "exclusiveMaximum": 1,
    "description": "the share of values that low and high should hold",
}
Functions = Annotated[list[Any], WithJsonSchema(FUNCTIONS)]


class Problem(BaseModel):
    """What was expected, what came, and what to do."""

    detail: str


class Operator(BaseModel):
    """A regressed operator; it is forgotten once nobody has asked for it for `expires_in`
    seconds."""

    id: str
    model: str
    n: int = Field(description="examples")
    v: list[int] = Field(description="the shape of the examples' v")
    u: list[int] = Field(description="the shape of the examples' u")
    bytes: int
    expires_in: float
    milliseconds: float = Field(description="that the regression took")
    warnings: list[str]
    expected_error: float | None = Field(
        None, description="squared error for new v, in units of the variation of u about its mean"
    )
    baselines: dict[str, float] = Field(
        default_factory=dict, description="leave-one-out errors of baselines in the same units"
    )


class Prediction(BaseModel):
    """Predictions u for queries; low and high if a band was asked for."""

    u: Functions
    low: Functions | None = None
    high: Functions | None = None
    milliseconds: float = Field(description="that the prediction took")
    warnings: list[str]


class Model(BaseModel):
    """A model that examples can be given to."""

    name: str
    dimensions: int = Field(description="of the domain")
    channels: dict[str, int] = Field(description="of v and of u")
    bands: bool = Field(description="whether predictions can have a band")
    adapts: bool = Field(description="whether any grids, units and channels, and parameters, fit")


class Health(BaseModel):
    """Whether the server works, and what it holds."""

    status: str
    operators: int
    bytes: int = Field(description="that the operators take")


def _body(required: list[str], fields: Schema, example: dict[str, object]) -> Schema:
    """A body that is JSON with these fields, npz with arrays of these names, or a table of v, and
    u if that is required."""
    schema = {
        "type": "object",
        "required": required,
        "properties": fields,
        "additionalProperties": False,
    }
    archive = {
        "type": "string",
        "format": "binary",
        "description": f"arrays {', '.join(fields)}, as numpy.savez writes them",
    }
    columns = ", ".join(f"{name}_0, {name}_1, ..." for name in required)
    table = {
        "type": "string",
        "description": f"a row for each function, columns {columns}; numbers may be positions",
    }
    content = {
        JSON: {"schema": schema, "example": example},
        NPZ: {"schema": archive},
        CSV: {"schema": table},
    }
    return {"requestBody": {"required": True, "content": content}}


ROW = [0.0, 0.2, 0.4, 0.6, 0.8, 0.7, 0.5, 0.3, 0.0]
QUERIES = _body(
    ["v"],
    {"v": FUNCTIONS, "x": POSITIONS, "at": AT, "band": BAND, "parameters": PARAMETERS},
    {"v": [ROW], "at": 5, "band": 0.9},
)
PREDICTED: dict[int | str, Schema] = {
    200: {
        "content": {
            NPZ: {
                "schema": {
                    "type": "string",
                    "format": "binary",
                    "description": "the same as arrays, without warnings",
                }
            }
        }
    }
}


def examples(models: list[str]) -> Schema:
    """The body of a regression by one of these models."""
    fields = {
        "v": FUNCTIONS,
        "u": FUNCTIONS,
        "x": POSITIONS,
        "x_v": OWN_POSITIONS,
        "x_u": OWN_POSITIONS,
        "parameters": PARAMETERS,
        "model": {"type": "string", "enum": models},
    }
    return _body(["v", "u"], fields, {"v": [ROW], "u": [ROW[::-1]]})


def problems(*statuses: int) -> dict[int | str, Schema]:
    """The descriptions of these refusals."""
    return {status: {"model": Problem, "description": MEANINGS[status]} for status in statuses}
