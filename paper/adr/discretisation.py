"""How functions become vectors: Fourier, sine, branch and trunk, or the raw grid, at an equal
budget. And the paper's own configuration.

What a space cannot represent is a floor that no training goes below: the relative squared error of
decode(encode(u))."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from transduce.evaluation import draw_tasks
from transduce.families import AdvectionDiffusionReaction
from transduce.metatraining import Training
from transduce.metrics import relative_mse
from transduce.random_fields import generator_for
from transduce.spaces import space_from_config

from ..lab import Lab, Part, Row
from ..measuring import Remembered, errors
from .trainings import SOFTMAX, trained, training, training_data

SPACES: dict[str, Row] = {
    "Fourier, 25 modes": {"space": "FourierModes", "modes": 25, "closed": True},
    "sine, 50 modes": {"space": "SineModes", "modes": 50},
    "sine, 64 modes": {"space": "SineModes", "modes": 64},
    "sine, 99 modes": {"space": "SineModes", "modes": 99},
    "branch and trunk, 101 points": {"space": "BranchTrunk", "points": 101},
    "raw grid, 101 points": {"space": "Euclidean", "size": 101},
}
SIZES = (10, 50, 100)
PAPERS_OWN: dict[str, Any] = {
    "model": "softmax",
    **{name: SPACES["Fourier, 25 modes"] for name in "VU"},
    "depth": 8,
    "heads": 32,
    "width": 16,
    "hidden": 100,
    "gain": 1e-3,
}


def floor(lab: Lab, space: Row, family: Remembered) -> float | None:
    """The error of decode(encode(u)) on the queries, where decoding is not learned."""
    if space["space"] == "BranchTrunk":
        return None
    U, scale = space_from_config(space), lab.scale
    draws = (
        draw_tasks(family, SIZES[-1], scale.queries, 1, generator_for("test", scale.seed, i))
        for i in range(scale.ablated)
    )
    u = torch.cat([task.queries.u for draw in draws for _, _, task in draw])
    return float(relative_mse(U.decode(U.encode(u), (u.shape[-1],)), u))


def measured(lab: Lab, name: str, model: Row, how: Training, data: Any) -> list[Row]:
    found = trained(lab, model, how, data)
    family = Remembered(AdvectionDiffusionReaction(), SIZES[-1])
    kept = {
        "floor": floor(lab, model["U"], family),
        "steps": how.steps,
        "parameters": sum(p.numel() for p in found.T.parameters()),
    }
    return [
        row | kept
        for row in errors(lab, name, found.T, found.identity, family, SIZES, lab.scale.ablated)
    ]


def measure(lab: Lab) -> list[Row]:
    rows = []
    for name, space in SPACES.items():
        rows += measured(
            lab, name, SOFTMAX | {"V": space, "U": space}, training(lab), training_data(lab)
        )
    return rows


def measure_papers_own(lab: Lab) -> list[Row]:
    """500 stored operators of 100 pairs, one operator and 10 queries a step, squared loss, Adam at
    1e-4, halved six times.

    n goes to 90, since 10 of 100 pairs are queries, and is drawn evenly in log n; the paper takes
    200,000 steps."""
    steps = lab.scale.paper_steps
    every = max(1, steps // 40)
    how = Training(
        steps=steps,
        lr=1e-4,
        muon_lr=0.0,
        tasks=1,
        n=(20, 90),
        queries=10,
        schedule="halving",
        warmup=0,
        clip=math.inf,
        loss="squared",
        standardise=False,
        validate_every=every,
        checkpoint_every=every,
        validation_tasks=min(32, lab.scale.operators),
    )
    few = training_data(lab).first(500, 100)
    return measured(lab, "the paper's own", PAPERS_OWN, how, few)


def table(rows: Sequence[Row]) -> list[Row]:
    """Mean error at each n, and the floor."""
    lines = []
    for name in dict.fromkeys(row["regressor"] for row in rows):
        own = [row for row in rows if row["regressor"] == name]
        floor = own[0]["floor"]
        errors = {f"n = {row['n']}": row["mean"] for row in own}
        lines.append(
            {
                "space": name,
                **errors,
                "floor": "learned" if floor is None else floor,
                "parameters": own[0]["parameters"],
            }
        )
    return lines


PART = Part("discretisation", "discretisations at equal budget", measure, table)
PAPERS_OWN_PART = Part(
    "papers_own", "the paper's own configuration, to the letter", measure_papers_own, table
)
