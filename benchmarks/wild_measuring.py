"""Measurements of benchmarks/wild.py: each error of one regressor on one set at one n is measured
once, kept on disk as soon as it is known, and found again in the next run."""

from __future__ import annotations

import hashlib
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

import transduce
from benchmarks.wild_sets import (
    PairSet,
    enough_rows,
    geometric_mean,
    number_of_splits,
    relative_error,
    split,
)
from paper.lab import Ledger
from transduce.baselines import BASELINES, DeepOnet, Fno, baseline
from transduce.baselines.window import interpolated
from transduce.files import brief
from transduce.report import Row
from transduce.types import ExampleSet, Operator, Regressor, TransduceError

FIVE = ("mean", "identity", "linear", "rbf", "window")  # the best of these is the yardstick
NETWORKS = ("fno", "deeponet")
NETWORKS_N, NETWORKS_ROWS, NETWORKS_POINTS = 50, 100, 200  # minutes each, so only here
OF_ONE_CHANNEL = ("window", *NETWORKS)  # on sets of one variable and channel
OF_EQUAL_POINTS = ("identity", "piecewise-direct-standardisation")


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Attributes:
        sizes: numbers of examples.
        splits: of each set; sets with few rows get more.
        models: names; the first is ours, the others are compared with it.
        baselines: names, beyond the five.
        quick: whether networks are hardly fitted, as in a smoke test.
    """

    sizes: tuple[int, ...]
    splits: int
    models: tuple[str, ...]
    baselines: tuple[str, ...]
    quick: bool = False

    def regressors(self, pairs: PairSet, n: int) -> list[str]:
        """Those that can answer, each once."""
        names = dict.fromkeys((*FIVE, *self.baselines, *self.models))
        return [name for name in names if name in self.models or applies(name, pairs, n)]


def applies(name: str, pairs: PairSet, n: int) -> bool:
    """Whether a baseline is measured on a set: it reads functions of this shape, and is not a
    network at another n."""
    one_channel = pairs.v.ndim == pairs.u.ndim == 2
    if name in NETWORKS:
        small = len(pairs.v) >= NETWORKS_ROWS and pairs.v.shape[-1] <= NETWORKS_POINTS
        return one_channel and n == NETWORKS_N and small
    if name in OF_EQUAL_POINTS:
        return pairs.v.shape == pairs.u.shape and (one_channel or name == "identity")
    return one_channel or name not in OF_ONE_CHANNEL


def check_names(models: Sequence[str], baselines: Sequence[str]) -> None:
    """Raise if a name is that of no model or baseline."""
    for name in baselines:
        if name not in BASELINES:
            baseline(name)  # raises
    for name in models:
        if not (name in BASELINES or name in transduce.names() or name.endswith(".safetensors")):
            raise TransduceError(
                f"there is no model {name!r}; expected one of {', '.join(transduce.names())}, or a "
                f"baseline: {', '.join(BASELINES)}. Name one of these with --model."
            )


def regressed(name: str, pairs: PairSet, examples: np.ndarray, quick: bool) -> Operator:
    """The operator that a model or a baseline regresses from the examples with these indices."""
    v, u = pairs.v[examples], pairs.u[examples]
    if name in NETWORKS:
        return _network(name, quick).regress(ExampleSet(_at(v, u), u))
    if name in BASELINES:
        return baseline(name).regress(ExampleSet(v, u))
    known = (("x_v", pairs.x_v), ("x_u", pairs.x_u))
    return transduce.regress(v, u, model=name, **{key: x for key, x in known if x is not None})


def _at(v: np.ndarray, u: np.ndarray) -> np.ndarray:
    """v on as many points as u."""
    return interpolated(v[:, None], u.shape[-1])[:, 0]


def _network(name: str, quick: bool) -> Regressor:
    R = baseline(name)
    if quick and isinstance(R, Fno | DeepOnet):
        return replace(R, fitting=replace(R.fitting, epochs=2, steps=0))
    return R


def measure(name: str, pairs: PairSet, n: int, splits: int, quick: bool = False) -> Row:
    """The error of a regressor: geometric mean over the splits, None if it failed in one.

    Returns:
        error, errors of each split, seconds of a split, and failure, a message or None.
    """
    errors, failure, begun = [], None, time.perf_counter()
    for number in range(number_of_splits(len(pairs.v), splits)):
        examples, held = split(len(pairs.v), n, number)
        q, u = pairs.v[held], pairs.u[held]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                O = regressed(name, pairs, examples, quick)
                u_hat = np.asarray(O(_at(q, u) if name in NETWORKS else q), dtype=float)
            errors.append(relative_error(u_hat, u, pairs.u[examples]))
        except Exception as error:  # of any kind: it counts as a failure, and is recorded
            failure = f"{type(error).__name__}: {brief(error)[:200]}"
            break
    seconds = (time.perf_counter() - begun) / max(len(errors), 1)
    whole = geometric_mean(errors) if errors and failure is None else None
    if whole is not None and not np.isfinite(whole):
        whole, failure = None, "values that are not finite"
    return {"error": whole, "errors": errors, "seconds": seconds, "failure": failure}


def measure_all(sets: Sequence[PairSet], plan: Plan, work: Path) -> list[Row]:
    """A row for each set, n and regressor, in this order. Networks are measured last.

    Args:
        sets: to measure on.
        plan: what to measure.
        work: folder of the measurements that are kept.
    """
    jobs = [
        (pairs, n, name)
        for pairs in sets
        for n in plan.sizes
        if enough_rows(len(pairs.v), n)
        for name in plan.regressors(pairs, n)
    ]
    if not jobs:
        most = max(len(pairs.v) for pairs in sets)
        raise TransduceError(
            f"the largest set has {most} rows, too few for n = {min(plan.sizes)} and 10 held-out "
            "pairs. Give smaller n, or larger sets."
        )
    ledger = Ledger(work / "measured.jsonl")
    for place, (pairs, n, name) in enumerate(sorted(jobs, key=lambda job: job[2] in NETWORKS), 1):
        key = _key(pairs, n, name, plan)
        if key not in ledger:
            begun = time.perf_counter()
            value = measure(name, pairs, n, plan.splits, plan.quick)
            ledger.add(key, value, time.perf_counter() - begun)
            _show(f"[{place}/{len(jobs)}] {pairs.name} n={n} {name}", value)
    return [
        {"set": pairs.name, "kind": pairs.kind, "n": n, "regressor": name}
        | _without_splits(ledger[_key(pairs, n, name, plan)]["value"])
        for pairs, n, name in jobs
    ]


def _key(pairs: PairSet, n: int, name: str, plan: Plan) -> Row:
    """What a measurement holds for: the data, the splits, and the code of the regressor."""
    splits = number_of_splits(len(pairs.v), plan.splits)
    quick = plan.quick and name in NETWORKS
    code = code_checksum("baselines" if name in BASELINES else "")
    data = {"set": pairs.name, "data": pairs.checksum[:16]}
    return data | {"n": n, "splits": splits, "regressor": name, "quick": quick, "code": code}


@cache
def code_checksum(folder: str) -> str:
    """Of the library's code and the checksums of its weights, or of one of its folders."""
    root = Path(transduce.__file__).parent / folder
    found = hashlib.sha256()
    for path in sorted((*root.rglob("*.py"), *root.rglob("checksums.json"))):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


@cache
def file_checksum(path: str) -> str:
    """Of a file, such as the benchmark that holds a baseline."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]


def _without_splits(value: Row) -> Row:
    return {name: kept for name, kept in value.items() if name != "errors"} | {
        "splits": len(value["errors"])
    }


def _show(what: str, value: Row) -> None:
    error = value["failure"] or f"{value['error']:.2e}"
    print(f"{what}: {error}  {value['seconds']:.2f} s a split", file=sys.stderr, flush=True)
