"""What each part of the general model contributes on third-party sets of function pairs:  python -m
benchmarks.wild_ablations

Errors are divided by those of the best of five baselines in hindsight, as benchmarks.wild defines
them, with three splits of every set. Variants of the model:

    without the read-out        the learned answer and its correction are left out
    without the summary         z = 0: the read-out's network does not see the examples
    without the baselines       identity, linear, rbf and window, and corrections of these, left out
    without corrections         answers that correct another one are left out
    without the learned trust   the weights follow the untrained rule
    without caution             the weights do not depend on the query
    wrong context               the complete model, with u shuffled among the examples

Each variant is written to the folder of kept measurements, and its file is named by its checksum. A
run that was killed resumes, and shares measurements with benchmarks.wild on sets of 100 rows or
more. Writes ablations.json and ablations.md to results/wild."""

from __future__ import annotations

import copy
import sys
import time
import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer

from benchmarks.wild import QUICK_SETS, QUICK_SPLITS, RESULTS, WORK, names_in, quick_folder
from benchmarks.wild_measuring import FIVE, Plan, code_checksum, measure_all, regressed
from benchmarks.wild_sets import (
    PairSet,
    enough_rows,
    geometric_mean,
    load_sets,
    number_of_splits,
    relative_error,
    split,
)
from benchmarks.wild_tables import WITHIN, summary, with_ratios
from paper.lab import Ledger
from transduce import Transducer, weights
from transduce.files import brief, provenance, replacing
from transduce.kernels import GeneralStack, Trust
from transduce.kernels.catalogue import BASELINES
from transduce.kernels.general import CURVES
from transduce.layer import Layer
from transduce.report import Row, markdown_table, write_rows
from transduce.types import TransduceError

SIZES, QUICK_SIZES, SPLITS = (10, 20), (10,), 3
COMPLETE, WRONG = "complete", "wrong context"
CAUTION, NO_CAUTION = 2, -100.0  # the output of the trust's network, and its value for none


def main(
    folder: Annotated[
        Path | None, typer.Argument(help="The folder of .npz files; `wild` of the data folder.")
    ] = None,
    only: Annotated[str, typer.Option(help="Sets whose name starts with any of these.")] = "",
    model: Annotated[str, typer.Option(help="A model, or a .safetensors file.")] = "general",
    quick: Annotated[bool, typer.Option("--quick", help="A smoke test: few and small.")] = False,
    out: Annotated[Path, typer.Option(help="The folder for the results.")] = RESULTS,
    work: Annotated[Path, typer.Option(help="The folder of kept measurements.")] = WORK,
) -> None:
    """Measure, print the table, and write rows and table."""
    try:
        sets = load_sets(folder, names_in(only))
        if quick:
            sets = sets[:QUICK_SETS]
            out = quick_folder(out)
        _run(sets, model, quick, out, work)
    except TransduceError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


def _run(sets: Sequence[PairSet], model: str, quick: bool, out: Path, work: Path) -> None:
    origin = provenance()  # of the code that measures, whatever is committed meanwhile
    sizes, splits = (QUICK_SIZES, QUICK_SPLITS) if quick else (SIZES, SPLITS)
    models = saved_variants(model, work / "variants")
    found = measure_variants(sets, Plan(sizes, splits, tuple(models.values()), ()), work)
    names = {path: variant for variant, path in models.items()}
    rows = [row | {"regressor": names.get(row["regressor"], row["regressor"])} for row in found]
    lines = table(rows := with_ratios(rows), [*models, WRONG])
    about = {
        "command": " ".join(["python -m benchmarks.wild_ablations", *sys.argv[1:]]),
        "seed": 0,
        "model": model,
        "best of": list(FIVE),
        "wrong context is worse": wrong_is_worse(lines),
    }
    write_rows(out / "ablations.json", rows, **about, **origin)
    with replacing(out / "ablations.md") as partial:
        partial.write_text(markdown_table(lines))
    print(markdown_table(lines))
    print("wrong context is worse (required):", "yes" if wrong_is_worse(lines) else "no")


def stack_of(T: Transducer) -> GeneralStack:
    """The answers of a general model and their trust."""
    kappa = T.steps[-1].kappa
    if len(T.steps) != 1 or not isinstance(kappa, GeneralStack):
        raise TransduceError("the model is not a general one. Name another with --model.")
    return kappa


def changed(T: Transducer, without: Collection[str] = (), trust: Trust | None = None) -> Transducer:
    """The model without some answers and those that correct them, or with another trust."""
    stack = stack_of(T)
    corrected = [name for name, (base, _) in CURVES.corrected.items() if base in without]
    left = tuple(dict.fromkeys((*stack.without, *without, *corrected)))
    other = GeneralStack(stack.V, stack.U, stack.readout, trust or stack.trust, left)
    made = Transducer(T.V, T.U, [Layer(other)])
    made.spread, made.card = T.spread, T.card
    return made.eval()


def without_summary(T: Transducer) -> Transducer:
    """The model with z = 0."""
    T = copy.deepcopy(T)
    for parameter in stack_of(T).readout.network.summarise.out.parameters():
        torch.nn.init.zeros_(parameter)
    return T


def untrained(trust: Trust) -> Trust:
    """A trust of the same shapes whose outputs are zero."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Trust(trust.answers, trust.width, trust.layers)


def without_caution(T: Transducer) -> Transducer:
    """The model whose weights are the same for all queries."""
    T = copy.deepcopy(T)
    out = stack_of(T).trust.out
    with torch.no_grad():
        out.weight[CAUTION], out.bias[CAUTION] = 0.0, NO_CAUTION
    return T


def variants_of(T: Transducer) -> dict[str, Transducer]:
    """The variants of a general model by name, the complete one first."""
    return {
        COMPLETE: T,
        "without the read-out": changed(T, ["readout"]),
        "without the summary": without_summary(T),
        "without the baselines": changed(T, [name for name in BASELINES if name != "mean"]),
        "without corrections": changed(T, list(CURVES.corrected)),
        "without the learned trust": changed(T, trust=untrained(stack_of(T).trust)),
        "without caution": without_caution(T),
    }


def saved_variants(model: str, folder: Path) -> dict[str, str]:
    """What `transduce.regress` calls each variant: the name of a bundled model, or the path of a
    file that is named by its checksum."""
    found = {}
    for name, T in variants_of(Transducer.from_pretrained(model)).items():
        if name == COMPLETE and model in weights.names():
            found[name] = model  # shares measurements with benchmarks.wild
            continue
        path = folder / f"{name.replace(' ', '-')}.safetensors"
        T.save_pretrained(path)
        found[name] = str(path.replace(path.with_stem(f"{path.stem}-{weights.sha256(path)[:16]}")))
    return found


def measure_variants(sets: Sequence[PairSet], plan: Plan, work: Path) -> list[Row]:
    """A row for each set, n and regressor: the five baselines, the variants, and the first of these
    in a wrong context. All sets have as many splits as the plan says, small ones too."""
    splits, least = plan.splits, min(plan.sizes)
    sets = [pairs for pairs in sets if enough_rows(len(pairs.v), least)]
    if not sets:
        raise TransduceError(f"no set has {least} examples and 10 held-out pairs. Give more rows.")
    shared = [pairs for pairs in sets if number_of_splits(len(pairs.v), splits) == splits]
    rows = measure_all(shared, plan, work) if shared else []
    ledger = Ledger(work / "ablations.jsonl")
    for pairs in sets:
        for n in (n for n in plan.sizes if enough_rows(len(pairs.v), n)):
            others = () if pairs in shared else plan.regressors(pairs, n)
            jobs = [*((name, name, False) for name in others), (WRONG, plan.models[0], True)]
            for label, name, wrong in jobs:
                about = {"set": pairs.name, "kind": pairs.kind, "n": n, "regressor": label}
                rows.append(about | _once(ledger, name, pairs, n, splits, wrong))
    return rows


def _once(ledger: Ledger, name: str, pairs: PairSet, n: int, splits: int, wrong: bool) -> Row:
    """A measurement, kept by all that it holds for."""
    code = code_checksum("baselines" if name in FIVE else "")
    key = {"set": pairs.name, "data": pairs.checksum[:16], "n": n, "splits": splits}
    key |= {"regressor": name, "wrong": wrong, "code": code}
    if key not in ledger:
        begun = time.perf_counter()
        ledger.add(key, measure(name, pairs, n, splits, wrong), time.perf_counter() - begun)
        what = f"{pairs.name} n={n} {Path(name).stem}{f', {WRONG}' if wrong else ''}"
        said = ledger[key]["value"]["failure"] or f"{ledger[key]['seconds']:.1f} s"
        print(f"{what}: {said}", file=sys.stderr, flush=True)
    return ledger[key]["value"] | {"seconds": ledger[key]["seconds"] / splits, "splits": splits}


def measure(name: str, pairs: PairSet, n: int, splits: int, wrong: bool = False) -> Row:
    """As in benchmarks.wild_measuring, with so many splits whatever the number of rows.
    wrong: whether u is shuffled among the examples."""
    errors = []
    try:
        for number in range(splits):
            examples, held = split(len(pairs.v), n, number)
            given = shuffled(pairs, examples, number) if wrong else pairs
            with warnings.catch_warnings(action="ignore"):
                u_hat = np.asarray(regressed(name, given, examples, False)(pairs.v[held]), float)
            errors.append(relative_error(u_hat, pairs.u[held], pairs.u[examples]))
    except Exception as error:  # of any kind: it counts as a failure, and is recorded
        return {"error": None, "failure": f"{type(error).__name__}: {brief(error)[:200]}"}
    if not np.isfinite(errors).all():
        return {"error": None, "failure": "values that are not finite"}
    return {"error": geometric_mean(errors), "failure": None}


def shuffled(pairs: PairSet, examples: np.ndarray, seed: int) -> PairSet:
    """The pairs with u moved along one random cycle through the examples: none keeps its own."""
    order, u = np.random.default_rng(seed).permutation(examples), pairs.u.copy()
    u[order] = pairs.u[np.roll(order, 1)]
    return replace(pairs, u=u)


def table(rows: Sequence[Row], names: Sequence[str]) -> list[Row]:
    """One row for each variant and n."""
    shown = ("n", "solvers", "measured", f"within {WITHIN}", "worst")
    every = [(name, line) for name in names for line in summary(rows, name)]
    return [{"variant": name} | {key: line[key] for key in shown} for name, line in every]


def wrong_is_worse(lines: Sequence[Row]) -> bool:
    """Whether the wrong context has larger mean errors than the right one, at each n."""
    right, wrong = ([row for row in lines if row["variant"] == name] for name in (COMPLETE, WRONG))
    both = list(zip(right, wrong, strict=True))
    each = [(a[kind], b[kind]) for kind in ("solvers", "measured") for a, b in both]
    return all(a is None or a < b for a, b in each)


if __name__ == "__main__":
    typer.run(main)
