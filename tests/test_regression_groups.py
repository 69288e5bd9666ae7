"""Groups of pairs that belong together: errors and bands are those of a new group."""

import warnings

import numpy as np
import pytest
import torch
from regression_samples import X, examples, gap, smooth

import transduce
from transduce import TransduceError
from transduce.random_fields import generator_for

pytestmark = pytest.mark.usefixtures("general")
V, U, QUERY = examples()
PARAMETERS = np.random.default_rng(2).standard_normal((18, 2))
GROUPS = np.repeat(np.arange(7), 2)
NAMES = np.repeat(list("abcdefg"), 2)


def test_groups_are_left_out_whole():
    """Each function four times with a little noise: a left-out one is predicted by its copies."""
    noise = 1e-3 * np.random.default_rng(0).standard_normal((4 * 10, 24))
    v = np.repeat(smooth(10), 4, 0)
    u = np.repeat(np.random.default_rng(1).standard_normal((10, 24)), 4, 0)
    alone = transduce.regress(v + noise, u, model="rbf").report()
    grouped = transduce.regress(v + noise, u, groups=np.repeat(np.arange(10), 4), model="rbf")
    assert alone.error < 0.05
    assert 0.7 < grouped.report().error < 2
    assert "leave-group-out" in str(grouped.report()) and "leave-one-out" in str(alone)
    general = transduce.regress(v + noise, u, groups=np.repeat(list("abcdefghij"), 4))
    assert general.report().error > 0.7


def test_groups_with_parameters():
    given = {"parameters": PARAMETERS[:14], "groups": GROUPS}
    report = transduce.regress(V, torch.tensor(U, requires_grad=True), **given).report()
    assert 0 < report.error < 2


def test_groups_are_left_out_of_baselines_too():
    """Neighbours in a group are nearly equal: a baseline that sees them looks better than it is."""
    rng = np.random.default_rng(0)
    means = rng.standard_normal((6, 20))
    v = np.repeat(means, 5, 0) + 1e-3 * rng.standard_normal((30, 20))
    u = np.repeat(rng.standard_normal((6, 20)), 5, 0) + 1e-3 * rng.standard_normal((30, 20))
    groups = np.repeat(np.arange(6), 5)
    single = transduce.regress(v, u).report()
    whole = transduce.regress(v, u, groups=groups).report()
    assert single.baselines["rbf"] < 0.01 < 0.5 < whole.baselines["rbf"]
    assert whole.baselines["mean"] == pytest.approx(1)
    assert set(whole.baselines) == set(single.baselines)


@pytest.mark.parametrize("model", ["general", "rbf", "nearest-neighbours"])
def test_one_group_is_warned_of(model):
    with pytest.warns(UserWarning, match="all pairs are of one group.*or leave out groups="):
        O = transduce.regress(V, U, groups=np.zeros(14), model=model)
    report, plain = O.report(), transduce.regress(V, U, model=model).report()
    assert report.error == plain.error and report.left_out == "one"
    assert any("all pairs are of one group" in text for text in report.warnings)
    assert all(np.isfinite(part).all() for part in O.predict(QUERY))


def test_dropping_all_groups_but_one_is_warned_of_and_adding_one_ends_it():
    O = transduce.regress(V, U, groups=NAMES)
    with pytest.warns(UserWarning, match="all pairs are of one group"):
        few = O.drop(np.arange(2, 14))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        more = few.add(V[2:4], U[2:4], groups=["b", "b"])
    assert not any("one group" in text for text in more.report().warnings)
    assert more.report().left_out == "group"


def repeated(count=12, times=4):
    """Functions that come several times with a little noise, and u that is noise by function."""
    rng = np.random.default_rng(0)
    v = np.repeat(smooth(count), times, 0) + 1e-3 * rng.standard_normal((times * count, 24))
    u = np.repeat(rng.standard_normal((count, 24)), times, 0)
    return v, u, np.repeat(np.arange(count), times)


def widths(O, query, **asked):
    _, low, high = O.predict(query, **asked)
    return np.asarray(high) - np.asarray(low)


@pytest.mark.parametrize("model", ["general", "rbf", "nearest-neighbours"])
def test_correlated_rows_give_wider_bands_with_groups(model):
    """New functions have new u: bands from single left-out pairs are far too narrow."""
    v, u, groups = repeated()
    query, truth = smooth(30, seed=9), np.random.default_rng(9).standard_normal((30, 24))
    alone = transduce.regress(v, u, model=model)
    grouped = transduce.regress(v, u, groups=groups, model=model)
    assert gap(alone(query), grouped(query), u) < 1e-9
    assert widths(grouped, query).mean() > 1.5 * widths(alone, query).mean()
    _, low, high = grouped.predict(query, band=0.9)
    assert ((low <= truth) & (truth <= high)).mean() > 0.8


def test_bands_of_groups_of_one_pair_are_much_like_those_of_single_pairs():
    """Fourteen groups are left out in ten parts, so bands differ a little."""
    alone, grouped = transduce.regress(V, U), transduce.regress(V, U, groups=np.arange(14))
    ratio = widths(grouped, QUERY).mean() / widths(alone, QUERY).mean()
    assert 0.5 < ratio < 2


def test_bands_of_groups_on_other_points_with_parameters_and_from_a_file(tmp_path):
    O = transduce.regress(V, U, x=X, parameters=PARAMETERS[:14], groups=NAMES)
    asked = {"parameters": PARAMETERS[14:], "at": 11}
    found = widths(O, QUERY, **asked)
    assert found.shape == (4, 11) and (found > 0).all()
    O.save(tmp_path / "grouped.safetensors")
    again = transduce.load(tmp_path / "grouped.safetensors")
    assert gap(widths(again, QUERY, **asked), found, U) < 1e-9


def test_bands_of_a_family_model_with_groups():
    """Examples that come three times: what is left of one is rounding, unless all are left out."""
    family = transduce.families.AdvectionDiffusionReaction()
    task = family.sample_task(8, 3, generator_for("test", 3))
    v, u, query = (np.asarray(f) for f in (task.examples.v, task.examples.u, task.queries.v))
    v, u, groups = np.repeat(v, 3, 0), np.repeat(u, 3, 0), np.repeat(np.arange(8), 3)
    alone, grouped = (transduce.regress(v, u, model="adr", groups=g) for g in (None, groups))
    assert widths(grouped, query).mean() > 2 * widths(alone, query).mean()


def test_added_pairs_join_the_groups_of_their_labels(tmp_path):
    whole = transduce.regress(V, U, groups=NAMES)
    O = whole.drop([1, 13])
    for origin in (O, _saved(O, tmp_path)):
        again = origin.add(V[[1, 13]], U[[1, 13]], groups=["a", "g"])
        order = np.r_[0, 2:13, 1, 13]
        assert _partition(again) == _partition(transduce.regress(V, U, groups=NAMES[order]))
    new = O.add(V[[1, 13]], U[[1, 13]], groups=["z", "g"])
    assert new.pairs.groups.labels[new.pairs.groups.codes[-2]] == "z"
    assert len(np.unique(new.pairs.groups.codes)) == 8


def test_groups_of_dates_are_the_same_in_any_unit():
    days = np.datetime64("2020-01-01") + GROUPS
    O = transduce.regress(V[:13], U[:13], groups=days[:13])
    for label in (days[13], days[13].astype("M8[ns]"), days[13].astype(object)):
        again = O.add(V[13:], U[13:], groups=np.array([label]))
        assert again.pairs.groups.codes[-1] == again.pairs.groups.codes[-2]


def test_groups_of_added_pairs_are_needed_where_examples_have_some_and_refused_elsewhere():
    grouped, plain = transduce.regress(V, U, groups=NAMES), transduce.regress(V, U)
    with pytest.raises(TransduceError, match=r"without groups; expected a label for each.*Give gr"):
        grouped.add(V[:1], U[:1])
    with pytest.raises(TransduceError, match=r"with groups; expected none, since .*Leave them out"):
        plain.add(V[:1], U[:1], groups=["a"])
    with pytest.raises(TransduceError, match=r"groups have shape \(2,\); expected \(1,\)"):
        grouped.add(V[:1], U[:1], groups=["a", "b"])


def _saved(O, folder):
    O.save(folder / "operator.safetensors")
    return transduce.load(folder / "operator.safetensors")


def _partition(O):
    """The rows of each group."""
    codes = O.pairs.groups.codes
    return {tuple(np.flatnonzero(codes == code)) for code in np.unique(codes)}
