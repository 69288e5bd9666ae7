"""Parameters as inputs: tables, categories, which run next, and what matters."""

import numpy as np
import pandas as pd
import pytest
import torch

import transduce
from transduce import figures
from transduce.types import TransduceError

X = np.linspace(0, 1, 20)


def table(n: int, seed: int = 0) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "speed": g.uniform(1, 2, n),
            "material": g.choice(["glass", "steel", "wood"], n),
            "coated": g.random(n) > 0.5,
            "count": g.integers(1, 5, n),
        }
    )


def response(t: pd.DataFrame) -> np.ndarray:
    k = t["material"].map({"glass": 1.0, "steel": 2.0, "wood": 3.0}).to_numpy()
    wave = np.sin(np.outer(k * t["speed"], X))
    return wave + np.outer(t["coated"], X)


def relative(answer, u, examples) -> float:
    return float(np.square(answer - u).sum() / np.square(u - examples.mean(0)).sum())


def numbers(n: int, p: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Parameters in different units, of which the first two matter."""
    q = np.random.default_rng(seed).uniform(size=(n, p))
    u = np.sin(4 * q[:, :1] + X) + q[:, 1:2] * X
    return q * 10.0 ** np.arange(p), u


@pytest.fixture(scope="module")
def study():
    t = table(40)
    return transduce.regress(t[:30], response(t[:30])), t


def test_more_than_seven_parameters_are_no_curve():
    p, u = numbers(40, 10)
    O = transduce.regress(None, u[:30], parameters=p[:30])
    assert O.report().reading.startswith("10 numbers to curves of 20 points")
    assert relative(O(p[30:]), u[30:], u[:30]) < 1e-2
    assert np.array_equal(O(p[30:]), O(None, parameters=p[30:]))


def test_the_order_of_columns_does_not_matter():
    """No smoothness across columns is assumed."""
    p, u = numbers(30, 9)
    order = np.random.default_rng(1).permutation(9)
    one = transduce.regress(None, u[:20], parameters=p[:20])(p[20:])
    other = transduce.regress(None, u[:20], parameters=p[:20, order])(p[20:, order])
    assert np.abs(one - other).max() < 1e-3 * u.std()


def test_units_of_parameters_do_not_matter():
    p, u = numbers(30, 4)
    one = transduce.regress(None, u[:20], parameters=p[:20])(p[20:])
    other = transduce.regress(None, u[:20], parameters=3e5 * p[:20] + 7)(3e5 * p[20:] + 7)
    assert np.abs(one - other).max() < 1e-5 * u.std()


def test_categories_integers_and_booleans_are_parameters(study):
    O, t = study
    assert relative(O(t[30:]), response(t[30:]), response(t[:30])) < 1e-2
    assert O.report().reading.startswith("6 numbers (speed, material=glass")


def test_categories_by_name_in_any_order(study):
    O, t = study
    assert np.array_equal(O(t[30:]), O(t[30:][["count", "coated", "material", "speed"]]))


def test_one_category_of_the_examples_is_enough(study):
    O, t = study
    steel = t[30:][t[30:]["material"] == "steel"]
    assert np.allclose(O(steel), O(t[30:])[(t[30:]["material"] == "steel").to_numpy()])


def test_saved_categories_come_back(study, tmp_path):
    O, t = study
    O.save(tmp_path / "o.safetensors")
    again = transduce.load(tmp_path / "o.safetensors")
    assert np.abs(again(t[30:]) - O(t[30:])).max() < 1e-6
    assert len(again.add(t[30:32], response(t[30:32]))) == 32


def test_categories_next_to_functions():
    t = table(30)
    v = np.sin(np.outer(t["speed"], X))
    O = transduce.regress(v, response(t), x_v=X, parameters=t)
    assert O(v[:3], parameters=t[:3]).shape == (3, 20)
    assert O.report().reading.startswith("curves of 20 points with 6 parameters")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda q: q.assign(material="lead"), "'lead'; expected one of 'glass', 'steel', 'wood'"),
        (lambda q: q.drop(columns="material"), "lacks column 'material'"),
    ],
)
def test_unknown_categories_are_refused(study, change, said):
    O, t = study
    with pytest.raises(TransduceError, match=said):
        O(change(t[30:]))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"parameters": None}, "v is None, and so are the parameters"),
        ({"parameters": np.zeros((30, 2, 2))}, "a table"),
        ({"parameters": np.zeros((30, 2)), "x_v": [0.0, 1.0]}, "Leave out x_v"),
        ({"parameters": table(30).assign(id=[f"run {i}" for i in range(30)])}, "30 different"),
        (
            {"parameters": table(30).assign(material=None).astype({"material": "string"})},
            "Leave out column 'material'",
        ),
    ],
)
def test_tables_that_are_refused(arguments, said):
    with pytest.raises(TransduceError, match=said):
        transduce.regress(None, response(table(30)), **arguments)


def test_functions_to_a_few_numbers():
    g = np.random.default_rng(0)
    v = g.standard_normal((40, 4)) @ np.sin(np.pi * np.outer(np.arange(1, 5), X))
    u = np.stack([v.mean(1), v.max(1)], 1)
    O = transduce.regress(v[:30], u[:30], x_v=X)
    assert relative(O(v[30:]), u[30:], u[:30]) < 0.2


def test_gradients_to_runs_are_derivatives_of_the_answer():
    p, u = (torch.from_numpy(a) for a in numbers(20, 3))
    step = 1e-5 * torch.randn(p.shape, generator=torch.Generator().manual_seed(0)).double()

    def answer(moved):
        O = transduce.regress(moved.requires_grad_(), u)
        return O(p[:4].detach() + 0.1).square().sum()

    (slope,) = torch.autograd.grad(answer(at := p.clone()), at)
    difference = answer(p + step) - answer(p - step)
    expected = 2 * float((slope * step).sum())
    assert float(difference.detach()) == pytest.approx(expected, rel=1e-3)


def test_runs_are_suggested_far_from_the_examples():
    p, u = numbers(30, 2)
    near = p[:, 0] < 0.5
    O = transduce.regress(None, u[near], parameters=p[near])
    first, second = O.suggest(p, k=2)
    assert not near[first] and first != second
    assert np.array_equal(O.suggest(pd.DataFrame(p), k=2), [first, second])


def test_a_suggested_run_reduces_the_error_more_than_a_random_one():
    p, u = numbers(220, 2)
    O = transduce.regress(None, u[:8], parameters=p[:8])
    pool, held = np.arange(8, 120), slice(120, None)
    chosen = pool[O.suggest(p[pool], k=4)]
    better = relative(O.add(p[chosen], u[chosen])(p[held]), u[held], u[:8])
    draws = np.random.default_rng(0)
    by_chance = []
    for _ in range(5):
        rows = draws.choice(pool, 4, replace=False)
        by_chance.append(relative(O.add(p[rows], u[rows])(p[held]), u[held], u[:8]))
    assert better < np.median(by_chance)


def test_functions_are_suggested_too():
    g = np.random.default_rng(0)
    v = g.standard_normal((40, 4)) @ np.sin(np.pi * np.outer(np.arange(1, 5), X))
    for u in (np.cumsum(v**2, 1), v**2, v):  # a window answers the last two
        O = transduce.regress(v[:20], u[:20], x=X)
        assert len(set(O.suggest(v[20:], k=3))) == 3
    with pytest.raises(TransduceError, match="two different u"):
        transduce.regress(v[:1], v[:1], x=X).suggest(v[20:])


@pytest.mark.parametrize("k", [0, 41])
def test_as_many_suggestions_as_candidates(study, k):
    O, t = study
    with pytest.raises(TransduceError, match=f"k={k} of 40 candidates; expected .* 1 to 40"):
        O.suggest(t, k=k)


def test_baselines_suggest_nothing():
    p, u = numbers(20, 2)
    with pytest.raises(TransduceError, match="model='general'"):
        transduce.regress(p, u, model="rbf").suggest(p)


def test_shares_of_an_additive_function_are_its_variances():
    p, _ = numbers(150, 3)
    q = p / 10.0 ** np.arange(3)
    u = np.outer(3 * q[:, 0] + q[:, 1], np.ones(5))
    S = transduce.regress(None, u, parameters=p).sensitivity()
    expected = np.array([9, 1, 0]) * q.var(0) / (3 * q[:, 0] + q[:, 1]).var()
    assert np.abs(S.shares - expected).max() < 0.1
    assert S.shares[2] < 1e-3


def test_shares_have_the_names_of_the_table(study, tmp_path):
    S = study[0].sensitivity()
    assert S.names == ("speed", "material", "coated", "count")
    assert S.shares.argmax() == 1 and "material" in str(S)
    figures.sensitivity(S, tmp_path / "s", xlabel="time (s)")
    assert "time (s)" in (tmp_path / "s.svg").read_text()
    assert (tmp_path / "s.png").stat().st_size > 1000


@pytest.mark.parametrize("u", ["numbers", "channels", "dates"])
def test_sensitivities_of_all_kinds_of_outputs_are_drawn(u, tmp_path):
    p, curves = numbers(12, 2)
    outputs = {"numbers": curves[:, :3], "channels": np.stack([curves, -curves], 1)}
    days = np.datetime64("2020-01-01") + np.arange(20)
    x = {"dates": days}.get(u)
    O = transduce.regress(None, outputs.get(u, curves), parameters=p, x_u=x)
    figures.sensitivity(O.sensitivity(), tmp_path / "s")
    assert (tmp_path / "s.png").exists()


def test_parts_of_a_curve_that_matter():
    g = np.random.default_rng(0)
    v = g.standard_normal((60, 20))
    O = transduce.regress(v, v[:, -3:] @ np.ones((3, 8)), x_v=X)
    S = O.sensitivity()
    assert S.names[S.shares.argmax()].endswith(("0.8571", "= 1"))


def test_two_examples_have_no_sensitivity():
    p, u = numbers(2, 2)
    with pytest.raises(TransduceError, match="at least 3"):
        transduce.regress(p, u).sensitivity()


def test_tables_are_regressed_in_inference_mode():
    """As servers do."""
    p, u = numbers(20, 3)
    with torch.inference_mode():
        inside = transduce.regress(None, u, parameters=p)(p[:3])
    assert np.allclose(inside, transduce.regress(None, u, parameters=p)(p[:3]))


def test_new_runs_of_a_table_are_read_by_name():
    p, u = numbers(20, 3)
    names = pd.DataFrame(p, columns=list("abc"))
    O = transduce.regress(None, u[:15], parameters=names[:15])
    one = O.add(None, u[15:], parameters=names[15:][["c", "a", "b"]])
    assert np.array_equal(one.pairs.v.array, transduce.regress(None, u, parameters=p).pairs.v.array)


def test_missing_columns_are_named(study):
    O, t = study
    with pytest.raises(TransduceError, match="lacks column 'speed'"):
        O(t[30:].drop(columns="speed"))


@pytest.mark.parametrize("constant", [0.1, 0.5])
def test_constant_columns_do_not_count(constant):
    """0.1 has a mean that differs from it by rounding."""
    p, u = numbers(12, 2)
    with_constant = np.column_stack([p, np.full(12, constant)])
    O = transduce.regress(None, u, parameters=with_constant)
    query = np.append(p[0], constant + 0.01)[None]
    assert np.abs(O(query) - O(with_constant[:1])).max() < 1e-6


def test_numbers_in_columns_of_objects_are_numbers():
    p, u = numbers(12, 3)
    O = transduce.regress(None, u, parameters=pd.DataFrame(p).astype(object))
    assert O.pairs.v.array.shape == (12, 1, 3)


def test_columns_of_one_name_are_refused():
    t = table(12)
    t.columns = ["speed", "material", "speed", "count"]
    with pytest.raises(TransduceError, match="the same name"):
        transduce.regress(None, np.zeros((12, 20)), parameters=t)


def test_constant_outputs_have_an_error_that_is_a_number():
    p, _ = numbers(20, 2)
    report = transduce.regress(None, np.full((20, 9), 3.0), parameters=p).report()
    assert report.error < 1 and not report.noise > 1


def test_effects_follow_descending_positions():
    p, _ = numbers(30, 2)
    u = np.outer(p[:, 0], np.arange(20.0))
    S = transduce.regress(None, u, parameters=p, x_u=X[::-1]).sensitivity()
    assert np.all(np.diff(S.x) > 0) and S.effects[0, 0, 0] > S.effects[0, 0, -1]
