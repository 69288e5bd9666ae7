"""Does the influence of an example, by one backward pass, rank as leaving it out does?

    python -m validation.influence        about a minute on one core

For queries of unseen operators, Spearman's rank correlation between `influence` and the change of
|O(v)|^2 / 2 when each example is left out. Writes results/validation/influence.json and
docs/figures/influence.png."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr

from paper import figures
from transduce.families import AdvectionDiffusionReaction, Burgers2d
from transduce.files import provenance
from transduce.random_fields import generator_for
from transduce.report import markdown_table, write_rows
from transduce.transducer import Transducer
from transduce.types import ExampleSet
from transduce.uncertainty import influence, many_regressions
from transduce.uncertainty.many import all_but_one

CASES = (("adr", AdvectionDiffusionReaction()), ("burgers", Burgers2d(amplitude=0.3)))
OPERATORS, N, QUERIES = 10, 50, 4


def left_out(T: Transducer, examples: ExampleSet, v: torch.Tensor) -> np.ndarray:
    """(query, example): how much of |O(v)|^2 / 2 goes when an example is left out."""
    full = T.regress(examples)(v)
    answers = torch.cat(
        [
            block[:, len(examples) :]
            for block in many_regressions(T, examples, all_but_one(len(examples)), v)
        ]
    )
    energies = [
        u.flatten(-(u.ndim - 1 - k)).square().sum(-1) / 2 for k, u in ((0, full), (1, answers))
    ]
    return (energies[0] - energies[1]).T.numpy()


def main() -> None:
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    shown: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for name, family in CASES:
        T, ranks = Transducer.from_pretrained(name), []
        for operator in range(OPERATORS):
            task = family.sample_task(N, QUERIES, generator_for("test", 5, operator))
            exact, O = left_out(T, task.examples, task.queries.v), T.regress(task.examples)
            for query in range(QUERIES):
                estimate = influence(O, task.queries.v[query : query + 1]).numpy()
                ranks.append(float(spearmanr(estimate, exact[query]).statistic))
                shown.setdefault(name, (exact[query], estimate))
        low, high = np.quantile(ranks, [0.1, 0.9])
        rows.append(
            {
                "model": name,
                "n": N,
                "Spearman": float(np.mean(ranks)),
                "low": float(low),
                "high": float(high),
                "queries": len(ranks),
            }
        )
    print(markdown_table(rows))
    about = {"command": " ".join(["python -m validation.influence", *sys.argv[1:]]), "seed": 5}
    write_rows(Path("results/validation/influence.json"), rows, **about, **provenance())
    figures.estimate_against_exact(shown, Path("docs/figures/influence"))


if __name__ == "__main__":
    main()
