"""How long fitting 100 examples and answering 1,000 queries takes, compared with a support vector
machine. Processor time; all are timed in turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from sklearn.svm import SVC

from transduce.baselines.classifiers import ScikitClassifier
from transduce.random_fields import one_thread
from transduce.types import Task

from ..lab import Lab, Part, Row
from ..timing import medians
from .setting import CLASSICAL, META, MODELS, identities, regressor, task_of

PLAIN = "support-vectors, not tuned"
QUERIES = 1000


def work(R: Any, task: Task) -> Any:
    return R.regress(task.examples)(task.queries.v)


def measured(lab: Lab) -> list[Row]:
    task = task_of("mnist", lab.scale.n, QUERIES, lab.scale.seed, 5000)
    found: dict[str, Any] = {name: regressor(lab, name) for name in (*MODELS, *META, *CLASSICAL)}
    found[PLAIN] = ScikitClassifier(lambda v, labels: SVC(C=10.0, gamma=0.02), PLAIN)
    works: list[Callable[[], Any]] = [partial(work, R, task) for R in found.values()]
    with one_thread(), torch.no_grad():
        seconds = dict(zip(found, medians(*works, repeats=lab.scale.repeats), strict=True))
    tuned, plain = seconds["support-vectors"], seconds[PLAIN]
    return [
        {"regressor": name, "seconds": s, "of_tuned": s / tuned, "of_plain": s / plain}
        for name, s in seconds.items()
    ]


def measure(lab: Lab) -> list[Row]:
    return lab.once(
        lambda: measured(lab),
        identity=identities(),
        n=lab.scale.n,
        repeats=lab.scale.repeats,
        seed=lab.scale.seed,
    )


def table(rows: Sequence[Row]) -> list[Row]:
    return [
        {
            "regressor": row["regressor"],
            "seconds": row["seconds"],
            "beside the tuned SVM": row["of_tuned"],
            "beside the SVM not tuned": row["of_plain"],
        }
        for row in rows
    ]


PART = Part(
    "costs", "time to fit 100 examples and answer 1,000 queries, one thread", measure, table
)
