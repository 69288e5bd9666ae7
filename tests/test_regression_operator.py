"""What `transduce.regress` returns: reports, novelty, bands, files, and other models."""

import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from regression_samples import X, answers, examples, gap, operator, smooth

import transduce
from transduce import TransduceError
from transduce.families import AdvectionDiffusionReaction
from transduce.random_fields import generator_for

pytestmark = pytest.mark.usefixtures("general")
V, U, QUERY = examples()
PARAMETERS = np.random.default_rng(2).standard_normal((18, 2))
GROUPS = np.repeat(np.arange(7), 2)


def test_add_and_drop_equal_a_new_regression():
    O = transduce.regress(V, U, x=X)
    few = O.drop([0, 5])
    kept = [i for i in range(14) if i not in (0, 5)]
    assert len(few) == 12
    assert gap(few(QUERY), answers(V[kept], U[kept], QUERY), U) == 0
    again = few.add(V[[0, 5]], U[[0, 5]])
    assert gap(again(QUERY), O(QUERY), U) < 1e-5
    assert len(O.drop(np.arange(14) > 2)) == 3


def test_add_and_drop_with_parameters_channels_and_groups():
    v, query = np.stack([V, V**2], 1), np.stack([QUERY, QUERY**2], 1)
    given = {"parameters": PARAMETERS[:14], "groups": GROUPS}
    O = transduce.regress(v, U, x_v=X[::-1], x_u=X, **given)
    again = O.drop(13).add(v[13:], U[13:], parameters=PARAMETERS[13:14], groups=GROUPS[13:])
    asked = {"parameters": PARAMETERS[14:]}
    assert gap(again(query, **asked), O(query, **asked), U) < 1e-5
    assert again.report().error == pytest.approx(O.report().error, rel=1e-4)


@pytest.mark.parametrize("kind", ["pandas", "xarray"])
def test_add_and_drop_with_labelled_rows(kind):
    names = list("abcdefghijklmn")
    coords = {"row": names, "x": X}
    v, u = (
        pd.DataFrame(f, names, X)
        if kind == "pandas"
        else xr.DataArray(f, dims=("row", "x"), coords=coords)
        for f in (V, U)
    )
    O = transduce.regress(v[:13], u[:13]).add(v[13:], u[13:]).drop(0)
    assert gap(np.asarray(O(QUERY)), answers(V[1:], U[1:], QUERY, x=X), U) < 1e-5


def test_add_reads_pairs_as_the_examples_were_read():
    """Three rows of 24 points: fields here, channels by default."""
    v = np.stack([V, V**2, V**3], 1)
    O = transduce.regress(v, U, channels=False)
    assert gap(O.drop(13).add(v[13:], U[13:])(v[:4]), O(v[:4]), U) < 1e-5


@pytest.mark.parametrize("which", [14, [0, 99], np.ones(14, bool)])
def test_examples_that_cannot_be_dropped(which):
    with pytest.raises(TransduceError, match=r"there is no example|leaves none of 14"):
        transduce.regress(V, U).drop(which)


CHANNELS = np.stack([V, V**2], 1)
ASKED = {"parameters": PARAMETERS[14:]}
SAVED = {
    "plain": ((V, U), {}, (QUERY,), {}),
    "descending": ((V, U), {"x_v": 3 * X[::-1], "x_u": X**2}, (QUERY,), {}),
    "channels": ((CHANNELS, U), {}, (CHANNELS[:4],), {}),
    "fields": ((CHANNELS, U), {"channels": False}, (CHANNELS[:4],), {}),
    "numbers": ((V[:, :3], U[:, 0]), {}, (V[:4, :3],), {}),
    "parameters": ((V, U), {"parameters": PARAMETERS[:14]}, (QUERY,), ASKED),
    "groups": ((V, U), {"groups": GROUPS}, (QUERY,), {}),
}  # fmt: skip


@pytest.mark.parametrize("case", SAVED)
def test_saved_and_loaded(case, tmp_path):
    pairs, options, query, asked = SAVED[case]
    O = transduce.regress(*pairs, **options)
    O.save(tmp_path / "operator.safetensors")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = transduce.load(tmp_path / "operator.safetensors")
    assert gap(again(*query, **asked), O(*query, **asked), pairs[1]) < 1e-12
    assert str(again.report()) == str(O.report())
    if case == "descending":
        at = [0.3, 0.2]
        assert gap(again(*query, at=at), O(*query, at=at), U) < 1e-12


def test_files_are_not_replaced_by_chance(tmp_path):
    O, path = transduce.regress(V, U), tmp_path / "operator.safetensors"
    O.save(path)
    with pytest.raises(TransduceError, match="or force=True to replace it") as error:
        O.save(path)
    assert "--force" not in str(error.value)
    O.save(path, force=True)


def test_files_that_hold_no_regression(tmp_path, model):
    with pytest.raises(TransduceError, match="there is no file"):
        transduce.load(tmp_path / "none.safetensors")
    (tmp_path / "bad.safetensors").write_bytes(b"nothing")
    with pytest.raises(TransduceError, match="not a safetensors file"):
        transduce.load(tmp_path / "bad.safetensors")
    with pytest.raises(TransduceError, match="holds no regression"):
        transduce.load(model)


def test_report():
    report = transduce.regress(V, U).report()
    assert report.n == 14
    assert report.baselines["mean"] == pytest.approx(1)
    assert 0 < report.error < 0.5
    assert sum(report.weights.values()) == pytest.approx(1)
    assert report.outliers == () and report.warnings == ()
    assert "expected error" in str(report) and "baselines" in str(report)


def test_a_constant_answer_scores_one():
    """If v says nothing about u, the mean is the best answer."""
    u = np.random.default_rng(0).standard_normal(U.shape)
    report = transduce.regress(V, u).report()
    assert report.error == pytest.approx(1, abs=0.15)
    assert transduce.regress(V, u, model="mean").report().error == pytest.approx(1)
    assert any("the mean of the examples is as good" in text for text in report.warnings)


def test_unrelated_functions_are_warned_of_and_related_ones_are_not():
    """Of fifteen pairs of independent curves, some answer always seems better than the mean."""

    def warned(seed: int, share: float) -> bool:
        v, other = smooth(30, seed=seed).reshape(2, 15, 24)
        report = transduce.regress(v, share * v + (1 - share) * other).report()
        return any(text.startswith("v ") for text in report.warnings)

    assert sum(warned(seed, 0.0) for seed in range(8)) >= 7
    assert not any(warned(seed, 0.9) for seed in range(4))


def test_leave_one_out_answers_are_those_without_each_example():
    O = transduce.regress(V, U, model="mean")
    expected = (U.sum(0) - U) / 13
    assert gap(O.leave_one_out, expected, U) < 1e-12


def test_few_examples_are_warned_of():
    report = transduce.regress(V[:3], U[:3]).report()
    assert any("3 examples: leave-one-out says little" in text for text in report.warnings)


def test_outliers_are_named():
    u = U.copy()
    u[6] = -40 * u[6]
    report = transduce.regress(V, u).report()
    assert report.outliers == (6,)
    assert any("examples 6 do not fit" in text for text in report.warnings)


def test_novelty():
    O = transduce.regress(smooth(60), operator(smooth(60)))
    inside = O.novelty(smooth(20, seed=5))
    assert 0.5 < np.median(inside) < 2
    assert O.novelty(smooth(60)).max() < 1e-6
    with pytest.warns(
        UserWarning, match=r"2 of 2 queries \(rows . and ., furthest first\): more than 5"
    ):
        assert O.novelty(50 * smooth(2, seed=5)).min() > 5


def test_novelty_of_duplicated_examples_and_of_parameters():
    O = transduce.regress(np.repeat(V, 2, 0), np.repeat(U, 2, 0))
    assert np.median(O.novelty(QUERY)) < 3
    O = transduce.regress(V, U, parameters=PARAMETERS[:14])
    with pytest.warns(UserWarning, match=r"1 of 2 queries \(row 1, furthest first\): more"):
        near, far = O.novelty(V[:2], parameters=PARAMETERS[:2] + np.diag([0, 50])[:, ::-1])
    assert near < 1e-6 and far > 5


@pytest.mark.parametrize("ask", ["__call__", "predict", "novelty"])
def test_queries_far_outside_the_examples_are_warned_of_once(ask):
    O = transduce.regress(smooth(60), operator(smooth(60)))
    far = smooth(5, seed=5) * np.array([1, 60, 1, 300, 1])[:, None]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        getattr(O, ask)(far)
    (text,) = [str(one.message) for one in said]
    assert text.startswith(
        "2 of 5 queries (rows 3 and 1, furthest first): more than 5 times as far"
    )


def test_queries_with_far_parameters_are_warned_of():
    O = transduce.regress(V, U, parameters=PARAMETERS[:14])
    with pytest.warns(UserWarning, match=r"1 of 4 queries \(row 2, furthest first\)"):
        O(QUERY, parameters=PARAMETERS[14:] + 90 * (np.arange(4)[:, None] == 2))


def test_queries_like_the_examples_and_in_other_units_give_no_such_warning():
    """Held-out queries, examples in groups that are nearly equal, and a warning of units alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (10, 30):
            v = smooth(n + 200, seed=n)
            transduce.regress(v[:n], operator(v[:n]))(v[n:])
        v = np.repeat(smooth(12), 3, 0) + 1e-3 * np.random.default_rng(0).normal(size=(36, 24))
        O = transduce.regress(v, operator(v), groups=np.repeat(np.arange(12), 3))
        O(smooth(50, seed=7))
        assert O.novelty(v[:1]).shape == (1,)
    with pytest.warns(UserWarning, match="Give both in the same units") as said:
        O(1e6 * QUERY)
    assert len(said) == 1


def noisy(n, m, seed):
    """A linear operator with white noise."""
    v = smooth(n + m, seed=seed)
    u = np.cumsum(v, 1) / 24 + 0.1 * np.random.default_rng(seed).standard_normal(v.shape)
    return v[:n], u[:n], v[n:], u[n:]


@pytest.mark.parametrize("n", [20, 50])
def test_bands_hold_about_nine_tenths(n):
    held = []
    for seed in range(3):
        v, u, query, truth = noisy(n, 40, seed)
        mean, low, high = transduce.regress(v, u).predict(query, band=0.9)
        assert (low < mean).all() and (mean < high).all()
        held.append(((low <= truth) & (truth <= high)).mean())
    assert np.mean(held) == pytest.approx(0.9, abs=0.06)


def test_bands_widen_where_answers_disagree():
    O = transduce.regress(V, U)
    near, far = (high - low for _, low, high in (O.predict(V), O.predict(4 * V)))
    assert far.mean() > 1.5 * near.mean()
    wide, narrow = (high - low for _, low, high in (O.predict(V, band=b) for b in (0.9, 0.5)))
    assert (wide > narrow).all()


def test_bands_far_beyond_exact_examples_are_wide():
    """However small the errors at the examples: their scale says nothing about such queries."""
    rng, x = np.random.default_rng(9), np.linspace(0, 1, 24)

    def curves(n):
        waves = [np.sin(np.pi * k * x + rng.uniform(0, 6, (n, 1))) / k for k in (1, 2, 3)]
        return sum(rng.standard_normal((n, 1)) * wave for wave in waves)

    v = curves(30)
    u = np.cumsum(np.sin(v), 1) / 24
    O = transduce.regress(v, u, x=x)
    largest = np.abs(u - u.mean(0)).max(0).mean()
    with pytest.warns(UserWarning, match="extrapolations"):
        _, low, high = O.predict(20 * curves(6))
    assert (high - low).mean() / 2 > 0.5 * largest
    _, low, high = O.predict(v)
    assert (high - low).mean() / 2 < 0.2 * largest


@pytest.mark.parametrize("name", ["mean", "identity", "linear", "rbf", "window", "kernel-ridge"])
def test_baselines_answer_through_the_same_door(name):
    O = transduce.regress(V, U, x=X[::-1], model=name)
    found = O(QUERY)
    assert found.shape == (4, 24)
    mean, low, high = O.predict(QUERY)
    assert gap(mean, found, U) == 0 and (low <= high).all()
    report = O.report()
    assert report.error == report.leave_one_out > 0
    assert set(report.baselines) == {"mean", "kernel-ridge"}
    assert O(QUERY[:, ::2], x=X[::-2]).shape == (4, 24)
    with pytest.raises(TransduceError, match="at= with the baseline"):
        O(QUERY, at=7)


def test_a_family_model_answers_through_the_same_door():
    task = AdvectionDiffusionReaction().sample_task(20, 5, generator_for("test", 3))
    v, u = task.examples.v.numpy(), task.examples.u.numpy()
    query, truth = task.queries.v.numpy(), task.queries.u.numpy()
    O = transduce.regress(v, u, model="adr")
    assert gap(O(query), truth, u) < 1
    assert O.report().error < 0.05
    assert not any("general" in text for text in O.report().warnings)
    assert O(query, at=7).shape == (5, 7)
    assert all(part.shape == truth.shape for part in O.predict(query))


def test_a_family_model_that_is_worse_than_a_baseline_says_so():
    """A reflection is no advection, diffusion or reaction."""
    v = smooth(14, np.linspace(0, 1, 101))
    report = transduce.regress(v, operator(v) + 5, model="adr").report()
    (said,) = [text for text in report.warnings if "Use model='general'" in text]
    better = min(report.baselines, key=report.baselines.get)
    assert f"error of {report.error:.3g}, and {better} {report.baselines[better]:.3g}" in said


def test_exported_operators_answer_in_the_users_units(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    O = transduce.regress(1e3 * V[:, ::-1], 10 * U + 101325, x_v=X[::-1], x_u=X**2)
    written = O.export(tmp_path / "operator.onnx")
    assert (written.v, written.u) == ((24,), (24,)) and written.difference < 1e-6
    session = onnxruntime.InferenceSession(tmp_path / "operator.onnx")
    for query in (1e3 * QUERY[:1], 1e3 * smooth(300, seed=8)):
        (found,) = session.run(["u"], {"v": query})
        assert found.dtype == np.float64
        assert gap(found, O(query), 10 * U) < 1e-5


def test_exported_operators_of_single_precision_examples_are_in_double(tmp_path):
    """Pressures near 101325 Pa have few digits in single precision."""
    onnxruntime = pytest.importorskip("onnxruntime")
    v, u = V.astype(np.float32), (U + 101325).astype(np.float32)
    transduce.regress(v, u).export(tmp_path / "operator.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "operator.onnx")
    (found,) = session.run(["u"], {"v": QUERY})
    assert gap(found, transduce.regress(v, u.astype(float))(QUERY), U) < 1e-5


def test_what_cannot_be_exported(tmp_path):
    with pytest.raises(TransduceError, match="expected the general model"):
        transduce.regress(V, U, model="rbf").export(tmp_path / "a.onnx")


@pytest.mark.parametrize("kind", ["curves", "channels", "descending", "numbers", "fields"])
def test_exported_operators_take_parameters(kind, tmp_path):
    """A second input, one row for each function."""
    onnxruntime = pytest.importorskip("onnxruntime")
    v, query, options = V, QUERY, {}
    if kind == "channels":
        v, query = CHANNELS, np.stack([QUERY, QUERY**2], 1)
    elif kind == "descending":
        options = {"x_v": X[::-1], "x_u": X**2}
    elif kind == "numbers":
        v, query = V[:, :3], QUERY[:, :3]
    elif kind == "fields":
        v, query, options = CHANNELS, CHANNELS[:4], {"channels": False}
    u = U * PARAMETERS[:14, :1]
    O = transduce.regress(v, u, parameters=1e3 * PARAMETERS[:14] + 5, **options)
    written = O.export(tmp_path / "operator.onnx")
    assert (written.v, written.parameters, written.u) == (v.shape[1:], 2, (24,))
    session = onnxruntime.InferenceSession(tmp_path / "operator.onnx")
    assert [given.name for given in session.get_inputs()] == ["v", "parameters"]
    for m in (1, 4):
        asked = {"v": query[:m], "parameters": 1e3 * PARAMETERS[14 : 14 + m] + 5}
        (found,) = session.run(["u"], asked)
        assert gap(found, O(asked["v"], parameters=asked["parameters"]), u) < 1e-5


def test_units_of_the_examples_make_models_of_families_free_of_units(tmp_path):
    """v in millimetres and u in kilograms give the same answer, in kilograms."""
    task = transduce.families.AdvectionDiffusionReaction().sample_task(
        12, 3, generator_for("test", 3)
    )
    v, u, query = (np.asarray(f) for f in (task.examples.v, task.examples.u, task.queries.v))
    plain = transduce.regress(v, u, model="adr", units="examples")
    scaled = transduce.regress(1e3 * v, 1e-3 * u, model="adr", units="examples")
    size = np.abs(plain(query)).max()
    for found, expected in zip(
        (scaled(1e3 * query), *scaled.predict(1e3 * query), scaled.leave_one_out),
        (plain(query), *plain.predict(query), plain.leave_one_out),
        strict=True,
    ):
        assert np.abs(1e3 * found - expected).max() < 1e-5 * size
    given = transduce.regress(1e3 * v, 1e-3 * u, model="adr")
    assert np.abs(1e3 * given(1e3 * query) - plain(query)).max() > 1e-2 * size
    scaled.save(tmp_path / "scaled.safetensors")
    again = transduce.load(tmp_path / "scaled.safetensors")
    assert np.allclose(again(1e3 * query), scaled(1e3 * query), rtol=1e-6)
    assert np.allclose(scaled.drop(0).pairs.units, scaled.pairs.units)


def test_unknown_units_are_refused():
    with pytest.raises(TransduceError, match="units='metres'; expected 'given' or 'examples'"):
        transduce.regress(np.eye(10), np.eye(10), units="metres")


def test_positions_beyond_the_examples_are_refused_in_their_own_units():
    v = smooth(12)
    O = transduce.regress(v, operator(v), x=np.linspace(400, 700, len(X)))
    expected = "at runs from 390.0 to 500.0; expected positions between 400.0 and 700.0"
    with pytest.raises(TransduceError, match=expected):
        O(v[:2], at=[390.0, 500.0])
