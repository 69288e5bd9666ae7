"""The stable names of what committed results hold for, and the defaults that these had when their
results were made.

Descriptions leave out a setting that has its value here. Keep these values when a default
changes: results that were measured with the old one then no longer match, as they should not. A
new class needs a line here before a result can name it; a new field of a class needs nothing."""

from __future__ import annotations

import hashlib
import json
import zlib

from transduce import weights
from transduce.baselines import (
    DeepOnet,
    Fitting,
    Fno,
    Identity,
    KernelRidge,
    LocalRidge,
    MeanOfExamples,
    Scikit,
)
from transduce.baselines.classical import powers_of_ten
from transduce.baselines.classifiers import ScikitClassifier
from transduce.families import (
    AdvectionDiffusionReaction,
    Burgers2d,
    ClimateHistory,
    ClimateWindows,
    ComposedImages,
    Mixture,
    Period,
    PermutedImages,
    SyntheticImages,
)
from transduce.metatraining import Training
from transduce.settings import Json, register, weights_identity
from transduce.settings import describe as describe
from transduce.storage import StoredFamily

from .baselines.inductive import Climatology, KernelRidgeDays, NearestDay, RidgeDays
from .baselines.vit import Fno2d, ViT


def weights_of(name: str) -> Json:
    """What identifies a bundled model: the SHA-256 of its file."""
    return weights_identity(weights.checksums()[f"{name}.safetensors"])


def short(description: Json) -> str:
    """Twelve digits that stand for a description, in names of folders."""
    text = json.dumps(description, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


EXAMPLES = 50  # that an estimator is described for: what it chooses from may depend on them

register(
    "training",
    Training,
    lr=1e-3,
    muon_lr=0.02,
    tasks=8,
    n=(20, 100),
    queries=16,
    schedule="cosine",
    warmup=200,
    clip=1.0,
    average=0.0,
    seed=0,
    validate_every=500,
    checkpoint_every=100,
    validation_tasks=32,
    standardise=True,
    loss="relative_l2",
    noise=0.0,
    left_out=False,
    kernel_rate=1.0,
)

register("mean", MeanOfExamples)
register("identity", Identity)
register("scikit-learn", Scikit, lambda R: {"estimator": R.estimator(EXAMPLES)})
register(
    "kernel ridge",
    KernelRidge,
    lambda R: {"gammas": R.gammas, "lambdas": R.lambdas},
    gammas=powers_of_ten(-6, -1, 2)[:-1],
    lambdas=powers_of_ten(-12, -2),
)
register(
    "local kernel ridge",
    LocalRidge,
    points=10_000,
    centres=1_000,
    across=5,
    spacings=(2, 3, 4),
    gammas=(0.03, 0.1, 0.3, 1.0),
    seed=0,
)
register(
    "fitting",
    Fitting,
    epochs=500,
    steps=0,
    lr=1e-3,
    batch=20,
    falling=False,
    weight_decay=0.0,
    held_out=0.0,
    patience=None,
    stop=None,
    seed=0,
)
TUNED_FNO = Fitting(epochs=300, steps=1_500, lr=3e-3, batch=20, falling=True)
TUNED_DEEPONET = Fitting(
    epochs=400, steps=2_000, lr=3e-3, batch=50, falling=True, weight_decay=1e-4
)
register("fno", Fno, modes=16, width=64, layers=1, padding=0.1, fitting=TUNED_FNO)
register("deeponet", DeepOnet, width=200, layers=4, activation="relu", fitting=TUNED_DEEPONET)
register("classifier", ScikitClassifier, lambda R: {"name": R.name, **R.choices})

register("climatology", Climatology, window=10)
register("nearest day", NearestDay, neighbours=1)
register("ridge of days", RidgeDays, alpha=1e-3)
register(
    "kernel ridge of days",
    KernelRidgeDays,
    kernel="matern",
    width=1.8,
    alpha=0.01,
    linear=1.0,
    level=0.2,
    per_point=False,
    slopes=0.0,
)
NETWORK = {"steps": 4_000, "batch": 16, "lr": 3e-3, "weight_decay": 0.05, "seed": 0}
register("vit", ViT, patch=3, width=64, depth=3, heads=4, dropout=0.1, **NETWORK)
register("fno of days", Fno2d, modes=6, width=24, layers=4, padding=0.0, dropout=0.0, **NETWORK)

register(
    "adr",
    AdvectionDiffusionReaction,
    length_scale=0.2,
    k_max=0.3,
    t=1.0,
    points=401,
    steps=16,
    v_length_scale=0.2,
)
register(
    "burgers",
    Burgers2d,
    amplitude=0.1,
    nu=(0.1, 0.5),
    start=0.0,
    increment=10.0,
    points=64,
    length_scale=0.125,
    resolution=64,
    dt=1 / 3,
)
register("mixture", Mixture)
register("permuted images", PermutedImages, blocks=(1, 2, 4, 7))
register("synthetic images", SyntheticImages, side=28, characters=0.7)
register("composed images", ComposedImages)
register("period", Period)
register("windows", ClimateWindows, window=20, lag=0)
register("history", ClimateHistory, asked=None, block=25)


def _stored(data: StoredFamily) -> dict[str, object]:
    """Shapes and a checksum of the first operator."""
    first = zlib.crc32(data.u[0].contiguous().numpy().tobytes())
    return {"v": tuple(data.v.shape), "u": tuple(data.u.shape), "first": f"{first:08x}"}


register("stored", StoredFamily, _stored)
