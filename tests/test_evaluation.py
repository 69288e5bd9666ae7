"""Rows are tidy, tasks are the same for every regressor, summaries are what they say; figures and tables come out."""

import json

import numpy as np
import pytest
import torch

from transduce import report
from transduce.baselines import KernelRidge, MeanOfExamples
from transduce.evaluation import evaluate, summarise
from transduce.random_fields import generator_for
from transduce.types import ExampleSet, Task


class Scalings:
    """O(v) = a v with a drawn once for each operator: a family that costs nothing."""

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        a, v = 1 + torch.rand((), generator=generator), torch.randn(n + m, 5, generator=generator)
        return Task(ExampleSet(v[:n], a * v[:n]), ExampleSet(v[n:], a * v[n:]))


class FirstRatio:
    """Exact on Scalings, and remembers what it was shown."""

    def __init__(self) -> None:
        self.seen = []

    def regress(self, examples):
        self.seen.append(examples)
        return lambda v: v * (examples.u[0, 0] / examples.v[0, 0])


def rows_of(regressor, n_examples=(2, 8), n_operators=6, number=0, n_queries=3):
    return evaluate(regressor, Scalings(), n_examples, n_operators, generator_for("test", number), n_queries)


def test_rows_are_tidy_and_plain():
    rows = rows_of(MeanOfExamples())
    assert rows == json.loads(json.dumps(rows))
    assert [(row["operator"], row["n"], row["query"]) for row in rows] == [(o, n, q) for o in range(6) for n in (2, 8) for q in range(3)]
    for row in rows:
        assert row["relative_mse"] == row["squared_error"] / row["squared_norm"]
        assert row["seconds"] > 0


def test_exact_regression_has_no_error():
    assert max(row["relative_mse"] for row in rows_of(FirstRatio())) < 1e-10


def test_every_regressor_sees_the_same_tasks():
    one, other = FirstRatio(), FirstRatio()
    rows = rows_of(one), rows_of(other)
    assert all(torch.equal(a.v, b.v) and torch.equal(a.u, b.u) for a, b in zip(one.seen, other.seen, strict=True))
    assert [row["squared_norm"] for row in rows[0]] == [row["squared_norm"] for row in rows[1]]
    assert [row["squared_norm"] for row in rows[0]] != [row["squared_norm"] for row in rows_of(FirstRatio(), number=1)]


def test_example_sets_are_nested():
    regressor = FirstRatio()
    rows = rows_of(regressor, n_examples=[8, 2])
    for few, many in zip(regressor.seen[::2], regressor.seen[1::2], strict=True):
        assert len(few) == 2 and len(many) == 8
        assert torch.equal(few.v, many.v[:2])
    norms = {n: [row["squared_norm"] for row in rows if row["n"] == n] for n in (2, 8)}
    assert norms[2] == norms[8]


def test_the_seed_of_a_row_draws_its_task_again_and_keeps_the_split():
    rows = rows_of(MeanOfExamples(), n_examples=4)
    assert len({row["seed"] for row in rows}) == 6
    for row in rows:
        assert row["seed"] >> 30 == 2  # "test"
        task = Scalings().sample_task(4, 3, torch.Generator().manual_seed(row["seed"]))
        assert np.isclose(task.queries.u[row["query"]].square().sum().item(), row["squared_norm"])


def test_summaries_are_the_statistics_they_name():
    rows = rows_of(MeanOfExamples(), n_operators=20)
    for summary in summarise(rows):
        chosen = [row for row in rows if row["n"] == summary["n"]]
        errors = [row["relative_mse"] for row in chosen]
        assert np.isclose(summary["mean"], np.mean(errors)) and np.isclose(summary["median"], np.median(errors))
        assert np.isclose(summary["pooled"], sum(row["squared_error"] for row in chosen) / sum(row["squared_norm"] for row in chosen))
        assert summary["low"] < summary["mean"] < summary["high"]
        assert (summary["operators"], summary["functions"]) == (20, 60)
    assert [summary["n"] for summary in summarise(rows)] == [2, 8]
    assert summarise(rows) == summarise(rows[::-1])


def test_the_interval_covers_the_mean():
    """Of 40 evaluations, about 38 intervals hold the mean over all."""
    summaries = [summarise(rows_of(MeanOfExamples(), 2, 20, number))[0] for number in range(40)]
    truth = np.mean([summary["mean"] for summary in summaries])
    assert 33 <= sum(summary["low"] <= truth <= summary["high"] for summary in summaries) <= 40


def test_figures_and_tables(tmp_path):
    summaries = {"kernel ridge": summarise(rows_of(KernelRidge())), "mean": summarise(rows_of(MeanOfExamples()))}
    report.error_against_n(summaries, tmp_path / "new" / "error", trained_range=(3, 6))
    task = Scalings().sample_task(5, 4, generator_for("test", 0))
    predictions, band = {"kernel ridge": task.queries.u, "mean": 0 * task.queries.u}, (task.queries.u - 1, task.queries.u + 1)
    report.prediction_over_truth(task, predictions, tmp_path / "prediction.png", count=2, bands={"kernel ridge": band})
    files = sorted(path.name for path in tmp_path.rglob("*.*"))
    assert files == ["error.png", "error.svg", "prediction.png", "prediction.svg"]
    first = (tmp_path / "new" / "error.svg").read_bytes()
    report.error_against_n(summaries, tmp_path / "new" / "error", trained_range=(3, 6))
    assert (tmp_path / "new" / "error.svg").read_bytes() == first

    rows = [{"condition": "clean", "regressor": name, **row} for name, summary in summaries.items() for row in summary]
    table = report.markdown_table(report.by_regressor(rows))
    assert table.splitlines()[0] == "| condition | regressor | n = 2 | n = 8 |"
    assert [line.split(" | ")[1] for line in table.splitlines()[2:]] == ["kernel ridge", "mean"]
    assert report.rich_table(summaries["mean"], "mean").row_count == 2


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.00456, "4.6e-3"),
        (50, "50"),
        (12.345, "12.3"),
        (0.516, "0.516"),
        (0.0, "0"),
        ("fno", "fno"),
        (float("nan"), "nan"),
        (123456.0, "1.2e5"),
    ],
)
def test_numbers_are_short(value, text):
    assert report.number(value) == text
