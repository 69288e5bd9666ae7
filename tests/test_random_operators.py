"""The family of random operators: seeds, mechanisms, soundness, storage and variation."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from conftest import fails, run

from transduce.families import RandomOperators
from transduce.families.laws import Dice, RandomOperator, RejectedError, measured
from transduce.families.random_operators import HELD_OUT, MECHANISMS, Varied
from transduce.families.random_operators.family import smooth_noise
from transduce.generation import SolverFamily, generate
from transduce.random_fields import generator_for
from transduce.storage import StoredFamily
from transduce.types import ExampleSet, OperatorFamily, Task, TransduceError


def fingerprint(task):
    """A hash of all bits of a task."""
    pairs = (task.examples.v, task.examples.u, task.queries.v, task.queries.u)
    return hashlib.sha256(b"".join(f.numpy().tobytes() for f in pairs)).hexdigest()


def drawn(*numbers, split="train", family=None):
    family = family or RandomOperators()
    return fingerprint(family.sample_task(4, 2, generator_for(split, *numbers)))


def test_it_is_a_family_with_a_solver():
    assert isinstance(RandomOperators(), OperatorFamily)
    assert isinstance(RandomOperators(), SolverFamily)
    np.testing.assert_allclose(RandomOperators().axes["x"], np.linspace(0, 1, 80), atol=1e-15)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_equal_seeds_give_equal_bits_and_others_do_not(mechanism):
    family = RandomOperators((mechanism,))
    tasks = [drawn(number, family=family) for number in (0, 1, 2, 0, 1, 2)]
    assert tasks[:3] == tasks[3:]
    assert len(set(tasks)) == 3


def test_splits_never_meet():
    tasks = [
        drawn(number, split=split)
        for split in ("train", "validation", "test")
        for number in range(6)
    ]
    assert len(set(tasks)) == 18


def test_bits_do_not_depend_on_threads_or_on_what_was_drawn_before():
    first = [drawn(7, number) for number in range(5)]
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert [drawn(7, number) for number in reversed(range(5))] == first[::-1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def check_pairs(mechanism, *counts):
    """Operators of seeds 0 to 10: their pairs have unit size, and vary."""
    family = RandomOperators((mechanism,))
    for seed in range(11):
        generator = generator_for("train", seed)
        operator = family.sample_operator(generator)
        assert operator.mechanism == mechanism
        for n in counts:
            pairs = family.sample_pairs(operator, n, generator)
            for f in (pairs.v, pairs.u):
                assert f.shape == (n, 80) and f.dtype == torch.float32
                assert torch.isfinite(f).all()
                assert f.square().mean().sqrt() == pytest.approx(1, abs=1e-5)
                assert (f - f.mean(0)).square().mean().sqrt() > 5e-6


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_pairs_are_finite_and_vary(mechanism):
    check_pairs(mechanism, 2, 20)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_many_pairs_are_finite_and_vary(mechanism):
    check_pairs(mechanism, 200)


def test_one_pair_can_be_drawn():
    family, generator = RandomOperators(("linear", "trajectory")), generator_for("train", 0)
    assert family.sample_pairs(family.sample_operator(generator), 1, generator).v.shape == (1, 80)


def test_held_out_mechanisms_are_not_drawn_by_default():
    default = RandomOperators().mechanisms
    assert set(default).isdisjoint(HELD_OUT)
    assert {*default, *HELD_OUT} == set(MECHANISMS)
    operators = (RandomOperators().sample_operator(generator_for("train", i)) for i in range(40))
    names = {operator.mechanism for operator in operators}
    assert len(names) > 6 and names <= set(default)


@pytest.mark.parametrize("mechanisms", [(), ("linear", "quadratic")])
def test_unknown_mechanisms_are_refused(mechanisms):
    with pytest.raises(TransduceError, match=r"mechanisms=.*; expected a tuple of some of linear"):
        RandomOperators(mechanisms)


def test_noise_is_of_the_stated_size():
    """On u in every noisy law, on v in some; none in others."""
    pairs = tuple(Dice(generator_for("test", 0)).normal(2, 50, 159) + 10)
    changed = []
    for seed in range(30):
        dice = Dice(generator_for("test", seed))
        noisy = measured(lambda n, dice: pairs, dice, 1.0, smooth_noise)(50, dice)
        changed.append([(f - g).std().item() for f, g in zip(noisy, pairs, strict=True)])
    of_v, of_u = zip(*changed, strict=True)
    assert 0.002 < min(of_u) < max(of_u) < 3
    assert 3 < sum(size > 0 for size in of_v) < 20 and max(of_v) < 0.6

    def law(n, dice):
        return pairs

    assert measured(law, dice, 0.0, smooth_noise) is law


def test_laws_without_solutions_are_drawn_in_parts_or_refused():
    """One pair of three has no solution: no 30 pairs come at once, but they come in parts."""

    def law(n, dice):
        v = dice.normal(n, 159)
        if (dice.uniforms(n) < 1 / 3).any():
            raise RejectedError
        return v, v

    def impossible(n, dice):
        raise RejectedError

    family = RandomOperators()
    pairs = family.sample_pairs(RandomOperator("linear", law), 30, generator_for("train", 0))
    assert pairs.v.shape == (30, 80)
    with pytest.raises(TransduceError, match="'linear' law could be drawn"):
        family.sample_pairs(RandomOperator("linear", impossible), 3, generator_for("train", 0))


def test_the_docs_state_the_shares():
    page = (Path(__file__).parent.parent / "docs" / "random_operators.md").read_text()
    shares = {name: MECHANISMS[name][1] for name in MECHANISMS if name not in HELD_OUT}
    assert dict(re.findall(r"^\| `([^`]+)` \| .* \| ([\d.]+) % \|$", page, re.M)) == {
        name: f"{100 * share / sum(shares.values()):.1f}" for name, share in shares.items()
    }


def contents(store):
    return {str(p.relative_to(store)): p.read_bytes() for p in store.rglob("*") if p.is_file()}


def test_operators_drawn_alone_are_those_of_a_store(tmp_path):
    family = RandomOperators()
    generate(family, tmp_path / "a.zarr", 6, 5, seed=3, workers=1)
    stored = xr.open_zarr(tmp_path / "a.zarr", consolidated=False)
    assert stored.attrs["mechanisms"] == list(family.mechanisms)
    for i in (5, 0, 3):
        generator = generator_for("train", 3, i)
        operator = family.sample_operator(generator)
        pairs = family.sample_pairs(operator, 5, generator)
        assert np.array_equal(stored.v[i], pairs.v) and np.array_equal(stored.u[i], pairs.u)
        assert list(MECHANISMS)[int(stored.mechanism[i])] == operator.mechanism


def test_two_workers_write_the_same_bytes(tmp_path):
    family = RandomOperators(tuple(MECHANISMS))
    for workers in (1, 2):
        generate(family, tmp_path / f"{workers}.zarr", 30, 5, workers=workers)
    assert contents(tmp_path / "1.zarr") == contents(tmp_path / "2.zarr")


def test_generate_random_from_the_shell(tmp_path):
    arguments = ("generate", "random", "--operators", 3, "--examples", 5, "--workers", 1)
    result = run(*arguments, "--out", tmp_path / "r.zarr")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("random: 3 operators of 5 examples")
    assert StoredFamily(tmp_path / "r.zarr").v.shape == (3, 5, 80)


def test_generate_random_refuses_the_options_of_others(tmp_path):
    line = fails("generate", "random", "--k-max", 0.2, "--out", tmp_path / "r.zarr")
    assert "--k-max of the family adr was given for random" in line
    assert list(tmp_path.iterdir()) == []


class OneTask:
    """A family of one task."""

    v, u = torch.arange(12.0).reshape(3, 4), torch.arange(12.0).reshape(3, 4) ** 2 - 5

    def sample_task(self, n, m, generator):
        pairs = ExampleSet(self.v, self.u)
        return Task(pairs[:n], pairs[n:])


@pytest.mark.parametrize("inverted", [0.0, 1.0])
def test_varied_tasks_are_reflected_with_signs_changed(inverted):
    """Examples and queries change alike; all eight changes are drawn."""
    seen = set()
    for seed in range(60):
        task = Varied(OneTask(), inverted).sample_task(2, 1, generator_for("test", seed))
        v, u = (
            torch.cat([task.examples.v, task.queries.v]),
            torch.cat([task.examples.u, task.queries.u]),
        )
        v, u = (u, v) if inverted else (v, u)
        mirrored, of_v, of_u = v[0, 0].abs() != 0, v.sum().sign(), u.sum().sign()
        v, u = (f.flip(-1) if mirrored else f for f in (of_v * v, of_u * u))
        assert torch.equal(v, OneTask.v) and torch.equal(u, OneTask.u)
        seen.add((bool(mirrored), int(of_v), int(of_u)))
    assert len(seen) == 8
