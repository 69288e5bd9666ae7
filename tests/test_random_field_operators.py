"""The family of random operators between fields: seeds, soundness, storage and variation."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from conftest import fails, run

from transduce.families import RandomFieldOperators
from transduce.families.laws import Dice, RandomOperator, RejectedError, measured
from transduce.families.random_field_operators import HELD_OUT, MECHANISMS, VariedFields
from transduce.families.random_field_operators.family import smooth_noise
from transduce.families.random_field_operators.grid import COARSE, FINE, FINE_TORUS, TORUS, kept
from transduce.generation import SolverFamily, generate
from transduce.random_fields import generator_for
from transduce.storage import StoredFamily
from transduce.types import ExampleSet, OperatorFamily, Task, TransduceError

CHEAP = ("linear", "local", "maps", "unrelated", "extremes", "forced")


def fingerprint(task):
    """A hash of all bits of a task."""
    pairs = (task.examples.v, task.examples.u, task.queries.v, task.queries.u)
    return hashlib.sha256(b"".join(f.numpy().tobytes() for f in pairs)).hexdigest()


def drawn(*numbers, split="train", family=None):
    family = family or RandomFieldOperators(CHEAP)
    return fingerprint(family.sample_task(2, 1, generator_for(split, *numbers)))


def test_it_is_a_family_with_a_solver():
    assert isinstance(RandomFieldOperators(), OperatorFamily)
    assert isinstance(RandomFieldOperators(), SolverFamily)
    assert [len(x) for x in RandomFieldOperators().axes.values()] == [2, 32, 32]


def test_points_are_kept_of_every_grid():
    """Both ends where fields are not periodic, all but the last point where they are."""
    for grid in (COARSE, FINE, TORUS, FINE_TORUS):
        x = kept(grid.x.expand(1, 1, grid.points, grid.points))[0, 0, 0]
        last = 31 / 32 if grid.periodic else 1
        np.testing.assert_allclose(x, np.linspace(0, last, 32), atol=1e-15)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_equal_seeds_give_equal_bits_and_others_do_not(mechanism):
    family = RandomFieldOperators((mechanism,))
    tasks = [drawn(number, family=family) for number in (0, 1, 0, 1)]
    assert tasks[:2] == tasks[2:]
    assert len(set(tasks)) == 2


def test_splits_never_meet():
    splits = ("train", "validation", "test")
    tasks = [drawn(number, split=split) for split in splits for number in range(4)]
    assert len(set(tasks)) == 12


def test_bits_do_not_depend_on_threads_or_on_what_was_drawn_before():
    family = RandomFieldOperators()
    first = [drawn(7, number, family=family) for number in range(4)]
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        again = [drawn(7, number, family=family) for number in reversed(range(4))]
        assert again == first[::-1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def exists(f):
    """The channels of fields that are not zero."""
    return f[:, :1] if not f[:, 1].any() else f


def check_pairs(mechanism, seeds, n):
    """Pairs have unit size over the channels that exist, and vary."""
    family = RandomFieldOperators((mechanism,))
    for seed in range(seeds):
        generator = generator_for("train", seed)
        operator = family.sample_operator(generator)
        assert operator.mechanism == mechanism
        pairs = family.sample_pairs(operator, n, generator)
        for f in (pairs.v, pairs.u):
            assert f.shape == (n, 2, 32, 32) and f.dtype == torch.float32
            assert torch.isfinite(f).all()
            f = exists(f)
            assert f.square().mean().sqrt() == pytest.approx(1, abs=1e-5)
            assert (f - f.mean(0)).square().mean().sqrt() > 5e-6


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_pairs_are_finite_and_vary(mechanism):
    check_pairs(mechanism, 3, 3)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_many_pairs_are_finite_and_vary(mechanism):
    check_pairs(mechanism, 4, 40)


def test_all_numbers_of_channels_occur():
    family, found = RandomFieldOperators(("linear", "maps")), set()
    for seed in range(60):
        pairs = family.sample_task(2, 1, generator_for("train", seed)).examples
        found.add(tuple(exists(f).shape[1] for f in (pairs.v, pairs.u)))
    assert found == {(1, 1), (1, 2), (2, 1), (2, 2)}


def test_one_pair_can_be_drawn():
    family, generator = RandomFieldOperators(("linear",)), generator_for("train", 0)
    pairs = family.sample_pairs(family.sample_operator(generator), 1, generator)
    assert pairs.v.shape == (1, 2, 32, 32)


def test_held_out_mechanisms_are_not_drawn_by_default():
    default = RandomFieldOperators().mechanisms
    assert set(default).isdisjoint(HELD_OUT) and len(HELD_OUT) >= 3
    assert {*default, *HELD_OUT} == set(MECHANISMS)


@pytest.mark.parametrize("mechanisms", [(), ("linear", "quadratic")])
def test_unknown_mechanisms_are_refused(mechanisms):
    with pytest.raises(TransduceError, match=r"mechanisms=.*; expected a tuple of some of darcy"):
        RandomFieldOperators(mechanisms)


def test_noise_is_of_the_stated_size_on_every_channel():
    pairs = tuple(Dice(generator_for("test", 0)).normal(2, 20, 2, 32, 32) + 10)
    changed = []
    for seed in range(30):
        dice = Dice(generator_for("test", seed))
        noisy = measured(lambda n, dice: pairs, dice, 1.0, smooth_noise)(20, dice)
        changed.append([(f - g).std((0, 2, 3)) for f, g in zip(noisy, pairs, strict=True)])
    of_v, of_u = (torch.stack(sizes) for sizes in zip(*changed, strict=True))
    assert 0.002 < of_u.min() < of_u.max() < 3
    assert 3 < (of_v > 0).all(1).sum() < 20 and of_v.max() < 0.6


def test_laws_without_solutions_are_drawn_in_parts_or_refused():
    def law(n, dice):
        v = dice.normal(n, 1, 32, 32)
        if (dice.uniforms(n) < 1 / 3).any():
            raise RejectedError
        return v, v

    def impossible(n, dice):
        raise RejectedError

    family = RandomFieldOperators()
    pairs = family.sample_pairs(RandomOperator("linear", law), 10, generator_for("train", 0))
    assert pairs.v.shape == (10, 2, 32, 32)
    with pytest.raises(TransduceError, match="'linear' law could be drawn"):
        family.sample_pairs(RandomOperator("linear", impossible), 2, generator_for("train", 0))


def test_the_docs_state_the_shares():
    page = (Path(__file__).parent.parent / "docs" / "random_field_operators.md").read_text()
    shares = {name: MECHANISMS[name][1] for name in MECHANISMS if name not in HELD_OUT}
    assert dict(re.findall(r"^\| `([^`]+)` \| .* \| ([\d.]+) % \|$", page, re.M)) == {
        name: f"{100 * share / sum(shares.values()):.1f}" for name, share in shares.items()
    }
    assert set(re.findall(r"^\| `([^`]+)` \|", page, re.M)) == set(MECHANISMS)


def test_operators_drawn_alone_are_those_of_a_store(tmp_path):
    """And the store is a family: its pairs are those that were drawn."""
    family = RandomFieldOperators(CHEAP)
    generate(family, tmp_path / "a.zarr", 4, 3, seed=3, workers=1)
    stored = xr.open_zarr(tmp_path / "a.zarr", consolidated=False)
    assert stored.v.dims == ("operator", "example", "component", "x", "y")
    assert stored.attrs["mechanisms"] == list(family.mechanisms)
    for i in (3, 0):
        generator = generator_for("train", 3, i)
        operator = family.sample_operator(generator)
        pairs = family.sample_pairs(operator, 3, generator)
        assert np.array_equal(stored.v[i], pairs.v) and np.array_equal(stored.u[i], pairs.u)
        assert list(MECHANISMS)[int(stored.mechanism[i])] == operator.mechanism
    task = VariedFields(StoredFamily(tmp_path / "a.zarr")).sample_task(
        2, 1, generator_for("test", 0)
    )
    assert task.examples.v.shape == (2, 2, 32, 32) and task.queries.u.shape == (1, 2, 32, 32)


def test_generate_random_fields_from_the_shell(tmp_path):
    arguments = ("generate", "random_fields", "--operators", 2, "--examples", 2, "--workers", 1)
    result = run(*arguments, "--out", tmp_path / "r.zarr")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("random_fields: 2 operators of 2 examples")
    line = fails("generate", "random_fields", "--k-max", 0.2, "--out", tmp_path / "s.zarr")
    assert "--k-max of the family adr was given for random_fields" in line


class OneTask:
    """A family of one task: u has one channel, v two."""

    v = torch.arange(1.0, 55.0).reshape(3, 2, 3, 3)
    u = torch.stack([v[:, 0] ** 2, torch.zeros(3, 3, 3)], 1)

    def sample_task(self, n, m, generator):
        pairs = ExampleSet(self.v, self.u)
        return Task(pairs[:n], pairs[n:])


def undone(f, transposed):
    """The flip and signs undone: the first value is the smallest, rows are before columns."""
    f = f.abs().mT if transposed else f.abs()
    axes = [
        axis for axis in (-1, -2) if f[0, 0].select(axis, 0).sum() > f[0, 0].select(axis, 2).sum()
    ]
    return f.flip(axes)


@pytest.mark.parametrize("inverted", [0.0, 1.0])
def test_varied_tasks_are_moved_with_signs_and_channels_changed(inverted):
    """Examples and queries change alike, and v and u move together; zeros stay second."""
    seen = set()
    for seed in range(150):
        task = VariedFields(OneTask(), inverted).sample_task(2, 1, generator_for("test", seed))
        v, u = (
            torch.cat([getattr(pairs, name) for pairs in (task.examples, task.queries)])
            for name in ("v", "u")
        )
        v, u = (u, v) if inverted else (v, u)
        transposed = bool((v[0, 0, 0, 1] - v[0, 0, 0, 0]).abs() == 3)
        assert not u[:, 1].any()
        plain = undone(v, transposed)
        exchanged = bool(plain[0, 0, 0, 0] != 1)
        assert torch.equal(plain.flip(1) if exchanged else plain, OneTask.v)
        assert torch.equal(undone(u, transposed), OneTask.u)
        corner = int(v[0, 0].abs().argmin())
        assert corner == int(u[0, 0].abs().argmin())
        signs = tuple(v[0, :, 0, 0].sign().tolist()), u[0, 0, 0, 0].sign().item()
        seen.add((transposed, corner, exchanged))
        seen.add(signs)
    assert len(seen) == 2 * 4 * 2 + 4 * 2
