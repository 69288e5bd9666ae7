"""Rows are tidy, tasks are the same for every regressor, summaries are what they say; tables come
out."""

import json

import numpy as np
import pytest
import torch

from transduce import report
from transduce.baselines import KernelRidge, MeanOfExamples
from transduce.evaluation import check_fit, draw_tasks, evaluate, summarise
from transduce.random_fields import generator_for
from transduce.storage import StoredFamily, write_arrays
from transduce.types import ExampleSet, Task, TransduceError


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
    return evaluate(
        regressor, Scalings(), n_examples, n_operators, generator_for("test", number), n_queries
    )


def test_rows_are_tidy_and_plain():
    rows = rows_of(MeanOfExamples())
    assert rows == json.loads(json.dumps(rows))
    assert [(row["operator"], row["n"], row["query"]) for row in rows] == [
        (o, n, q) for o in range(6) for n in (2, 8) for q in range(3)
    ]
    for row in rows:
        assert row["relative_mse"] == row["squared_error"] / row["squared_norm"]
        assert row["seconds"] > 0


def test_exact_regression_has_no_error():
    assert max(row["relative_mse"] for row in rows_of(FirstRatio())) < 1e-10


def test_every_regressor_sees_the_same_tasks():
    one, other = FirstRatio(), FirstRatio()
    rows = rows_of(one), rows_of(other)
    assert all(
        torch.equal(a.v, b.v) and torch.equal(a.u, b.u)
        for a, b in zip(one.seen, other.seen, strict=True)
    )
    assert [row["squared_norm"] for row in rows[0]] == [row["squared_norm"] for row in rows[1]]
    assert [row["squared_norm"] for row in rows[0]] != [
        row["squared_norm"] for row in rows_of(FirstRatio(), number=1)
    ]


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
        assert np.isclose(summary["mean"], np.mean(errors)) and np.isclose(
            summary["median"], np.median(errors)
        )
        assert np.isclose(
            summary["pooled"],
            sum(row["squared_error"] for row in chosen)
            / sum(row["squared_norm"] for row in chosen),
        )
        assert np.isclose(summary["relative_l2"], np.mean([error**0.5 for error in errors]))
        assert summary["low"] < summary["mean"] < summary["high"]
        assert (summary["operators"], summary["functions"]) == (20, 60)
    assert [summary["n"] for summary in summarise(rows)] == [2, 8]
    assert summarise(rows) == summarise(rows[::-1])


def test_the_interval_covers_the_mean():
    """Of 40 evaluations, about 38 intervals hold the mean over all."""
    summaries = [summarise(rows_of(MeanOfExamples(), 2, 20, number))[0] for number in range(40)]
    truth = np.mean([summary["mean"] for summary in summaries])
    assert 33 <= sum(summary["low"] <= truth <= summary["high"] for summary in summaries) <= 40


def test_progress_is_told_after_each_operator():
    regressor, done = FirstRatio(), []
    evaluate(
        regressor,
        Scalings(),
        [2, 8],
        6,
        generator_for("test", 0),
        3,
        progress=lambda: done.append(len(regressor.seen)),
    )
    assert done == [2, 4, 6, 8, 10, 12]


@pytest.fixture
def stored(tmp_path):
    """Seven operators of twelve pairs, O number a being v -> (a + 1) v and each v beginning with
    its own number."""
    v = np.random.default_rng(0).normal(size=(7, 12, 5))
    v[:, :, 0] = 1 + np.arange(7 * 12).reshape(7, 12)
    x = np.array([0.0, 0.1, 0.5, 0.6, 1.0])
    write_arrays(tmp_path / "mine.npz", {"v": v, "u": v * np.arange(1, 8)[:, None, None], "x": x})
    return StoredFamily(tmp_path / "mine.npz")


def test_every_stored_operator_is_evaluated_once(stored):
    regressor = FirstRatio()
    rows = evaluate(regressor, stored, 4, 7, generator_for("test", 0), 8)
    order = list(dict.fromkeys(row["operator"] for row in rows))
    assert sorted(order) == list(range(7))
    assert [
        round(float(seen.u[0, 0] / seen.v[0, 0])) - 1 for seen in regressor.seen
    ] == order  # the rows name the stored operators
    assert max(row["relative_mse"] for row in rows) < 1e-10
    assert summarise(rows)[0]["operators"] == 7


def test_stored_tasks(stored):
    drawn = list(draw_tasks(stored, 4, 8, 3, generator_for("test", 0)))
    assert len({operator for operator, _, _ in drawn}) == 3
    # "test".
    assert len({seed for _, seed, _ in drawn}) == 3 and all(seed >> 30 == 2 for _, seed, _ in drawn)
    for operator, _, task in drawn:
        assert (len(task.examples), len(task.queries)) == (4, 8)
        numbers = torch.cat([task.examples.v[:, 0], task.queries.v[:, 0]])
        assert sorted(numbers.tolist()) == stored.v[operator, :, 0].tolist()  # every pair once
        assert torch.equal(task.examples.x, stored.x) and torch.equal(task.queries.x, stored.x)
    again, other = (
        list(draw_tasks(stored, 4, 8, 3, generator_for("test", number))) for number in (0, 1)
    )
    assert all(
        torch.equal(a[2].examples.v, b[2].examples.v) for a, b in zip(drawn, again, strict=True)
    )
    assert not all(
        torch.equal(a[2].examples.v, b[2].examples.v) for a, b in zip(drawn, other, strict=True)
    )


@pytest.mark.parametrize(
    ("n", "queries", "operators", "message"),
    [
        (4, 8, 8, r"8 operators were asked for; .* holds 7, .* at most 7"),
        (
            5,
            8,
            7,
            r"n = 5 examples and 8 queries need 13 pairs; .* holds 12 of each "
            r"operator. Ask for n up to 4",
        ),
        (1, 12, 7, r"n = 1 examples and 12 queries need 13 pairs; .* Ask for fewer queries"),
    ],
)
def test_more_than_is_stored_is_refused(stored, n, queries, operators, message):
    for ask in (
        lambda: evaluate(MeanOfExamples(), stored, n, operators, generator_for("test", 0), queries),
        lambda: check_fit({}, stored, [1, n], operators, generator_for("test", 0), queries),
    ):
        with pytest.raises(TransduceError, match=message):
            ask()


def test_a_regressor_that_does_not_fit_is_named():
    class Halves:
        def regress(self, examples):
            return lambda v: v[:, ::2]

    exact = FirstRatio()
    check_fit({"exact": exact}, Scalings(), [8, 2], 6, generator_for("test", 0), 3)
    assert [len(seen) for seen in exact.seen] == [2]
    with pytest.raises(TransduceError, match=r"^halves: u_hat has shape \(3, 3\) and u \(3, 5\)"):
        check_fit(
            {"exact": exact, "halves": Halves()}, Scalings(), [8, 2], 6, generator_for("test", 0), 3
        )


def test_tables():
    summaries = {
        "kernel-ridge": summarise(rows_of(KernelRidge())),
        "mean": summarise(rows_of(MeanOfExamples())),
    }
    rows = [
        {"condition": "clean", "regressor": name, **row}
        for name, summary in summaries.items()
        for row in summary
    ]
    table = report.markdown_table(report.by_regressor(rows))
    assert table.splitlines()[0] == "| condition | regressor | n = 2 | n = 8 |"
    assert [line.split(" | ")[1] for line in table.splitlines()[2:]] == ["kernel-ridge", "mean"]
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


def test_another_metric_and_tasks_that_are_listed():
    """The rows have the metric's own columns, and tasks come in the family's own order."""

    class Listed:
        def tasks(self, n, m, count, generator):
            for number in (7, 3)[:count]:
                v = torch.full((n + m, 5), float(number))
                yield number, 0, Task(ExampleSet(v[:n], v[:n]), ExampleSet(v[n:], v[n:] + 1))

    def largest(u_hat, u):
        return {"largest": (u_hat - u).abs().flatten(1).amax(1).tolist()}

    rows = evaluate(MeanOfExamples(), Listed(), 2, 2, generator_for("test", 0), 3, metric=largest)
    assert [(row["operator"], row["query"]) for row in rows] == [
        (number, query) for number in (7, 3) for query in range(3)
    ]
    assert all(row["largest"] == 1 and "relative_mse" not in row for row in rows)
