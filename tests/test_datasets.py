"""Monte Carlo over datasets: against enumeration of all of them, and operators whose parameter is
known."""

import math
from itertools import combinations

import numpy as np
import pytest
import torch
from conftest import small_transducer

from transduce import ExampleSet, FourierModes, SineModes, TransduceError, Transducer, models
from transduce.uncertainty.datasets import Explained, dataset_posterior, neighbours_of


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def scalings(a, modes=3, seed=0):
    """Pairs u = a v, v being of a few modes on 33 points."""
    c = torch.randn(len(a), modes, dtype=torch.float64, generator=seeded(seed))
    v = SineModes(modes).decode(c, 33)
    return ExampleSet(v, torch.as_tensor(a, dtype=torch.float64)[:, None] * v)


def relative_errors(T, examples, observed):
    """|u_i - T(S)(v_i)| / |u_i| by way of `regress`."""
    left = T.regress(examples)(observed.v) - observed.u
    return left.flatten(1).norm(dim=1) / observed.u.flatten(1).norm(dim=1)


def test_the_chains_find_what_enumeration_finds():
    """All centres c and all sets S of two among four neighbours, each regressed on its own."""
    T, theta = (
        small_transducer("representer", depth=1),
        torch.tensor([0.5, 0.6, 0.7, 0.8, 1.3, 1.9, 2.6, 3.2], dtype=torch.float64),
    )
    bank, observed, noise = scalings(theta, modes=2), scalings([1.8, 1.8], modes=2, seed=1), 0.4
    logs, means = [], []
    for inside in neighbours_of(theta[:, None], 4):
        for pair in combinations(inside.nonzero().flatten().tolist(), 2):
            logs.append(
                -float(relative_errors(T, bank[list(pair)], observed).square().sum())
                / (2 * noise**2)
            )
            means.append(float(theta[list(pair)].mean()))
    p, means = (
        torch.softmax(torch.tensor(logs, dtype=torch.float64), 0),
        torch.tensor(means, dtype=torch.float64),
    )
    mean = float(p @ means)
    deviation = math.sqrt(float(p @ (means - mean) ** 2))
    found = dataset_posterior(
        T,
        bank,
        theta,
        observed,
        noise=noise,
        k=2,
        among=4,
        samples=40000,
        chains=200,
        generator=seeded(),
    )
    assert p.max() > 3 / len(p)  # or there would be nothing to find
    assert abs(means.mean() - mean) > 0.2 * deviation
    assert float(found.mean) == pytest.approx(mean, abs=0.06 * deviation)
    assert float(found.samples.std()) == pytest.approx(deviation, rel=0.05)
    assert found.members.sum() == pytest.approx(2)
    assert found.effective > 1000


PLANE = FourierModes((3, 3), channels=2)
NETWORK = {"channels": 5, "layers": 1, "modes": 3, "grid": 8}


SMALL = {"depth": 2, "heads": 2, "width": 6, "hidden": 16}
MODELS = {
    "softmax": lambda: models.softmax(PLANE, PLANE, **SMALL),
    "representer": lambda: models.representer(PLANE, PLANE, **SMALL),
    "spectral": lambda: models.spectral(PLANE, PLANE, **NETWORK),
    "spectral, then representer": lambda: Transducer(
        PLANE, PLANE, [*MODELS["spectral"]().steps, *MODELS["representer"]().steps]
    ),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("points", [8, 6])
def test_errors_are_those_of_regressions_one_by_one(name, points):
    """Also of functions that the model's coefficients do not say all of."""
    torch.manual_seed(0)
    T = MODELS[name]().double().eval()
    v = torch.randn(9, 2, points, points, dtype=torch.float64, generator=seeded())
    pairs = ExampleSet(v, v.roll(1, 2) + 0.3 * v**2)
    bank, observed = pairs[:7], pairs[7:]
    sets = torch.tensor([[1, 0, 1, 1, 0, 0, 0], [0, 1, 0, 0, 1, 0, 1]], dtype=torch.bool)
    with torch.no_grad():
        energies = Explained(T, bank, observed, noise=0.5).energy(sets)
        for members, energy in zip(sets, energies, strict=True):
            e = relative_errors(T, bank[members.numpy()], observed)
            assert float(energy) == pytest.approx(float(e.square().sum()) / 0.5, rel=1e-6)


def test_the_posterior_concentrates_on_the_truth_and_widens_with_noise():
    T, theta = (
        small_transducer("representer", depth=1),
        torch.linspace(0.5, 2.5, 60, dtype=torch.float64),
    )
    bank, truth = scalings(theta), 1.9
    observed = scalings([truth] * 4, seed=1)
    sharp, blurred = (
        dataset_posterior(
            T, bank, theta, observed, noise=s, samples=2000, chains=20, generator=seeded()
        )
        for s in (0.05, 1.0)
    )
    assert sharp.low <= truth <= sharp.high
    assert abs(sharp.mean - truth) < 0.15
    assert sharp.high - sharp.low < 0.4 * (blurred.high - blurred.low)
    assert blurred.high - blurred.low < theta[-1] - theta[0]
    assert sharp.errors.mean() < 0.1 < blurred.errors.mean()
    near = (theta - truth).abs() < 0.4
    assert sharp.members[near].sum() > 0.9 * 6
    assert 0 < sharp.acceptance < blurred.acceptance < 1
    assert sharp.samples.shape == sharp.errors.shape == (2000,)


def test_several_parameters_at_once():
    """u = a v + b v reversed: neither alone says what u is."""
    T, theta = (
        small_transducer("representer", depth=1),
        2 * torch.rand(120, 2, dtype=torch.float64, generator=seeded(5)),
    )

    def images(v, theta):
        return theta[:, :1] * v + theta[:, 1:] * v.flip(1)

    v = scalings(torch.ones(124)).v
    bank, truth = (
        ExampleSet(v[:120], images(v[:120], theta)),
        torch.tensor([[0.6, 1.5]], dtype=torch.float64),
    )
    observed = ExampleSet(v[120:], images(v[120:], truth))
    found = dataset_posterior(
        T,
        bank,
        theta.numpy(),
        observed,
        noise=0.08,
        k=5,
        samples=2000,
        chains=20,
        generator=seeded(),
    )
    assert isinstance(found.mean, np.ndarray) and found.mean.shape == found.low.shape == (2,)
    assert found.samples.shape == (2000, 2)
    assert np.abs(found.mean - truth.numpy()).max() < 0.25
    assert (found.low < truth.numpy()).all() and (truth.numpy() < found.high).all()


def test_neighbours_are_the_nearest_in_units_of_the_spread():
    theta = torch.tensor(
        [[0.0, 0.0], [1.0, 0.0], [0.0, 1000.0], [5.0, 2000.0]], dtype=torch.float64
    )
    assert neighbours_of(theta, 2).int().tolist() == [
        [1, 1, 0, 0],
        [1, 1, 0, 0],
        [1, 0, 1, 0],
        [0, 0, 1, 1],
    ]
    assert neighbours_of(torch.ones(5, 1, dtype=torch.float64), 3).sum(1).tolist() == [3] * 5
    assert neighbours_of(torch.ones(5, 1, dtype=torch.float64), 1).diagonal().all()


def test_a_seed_gives_the_same_samples():
    T, theta = small_transducer(), np.linspace(1, 2, 12)
    bank, observed = scalings(theta), scalings([1.5])
    given = [
        dataset_posterior(
            T, bank, theta, observed, noise=0.1, k=3, samples=20, generator=seeded(s)
        ).samples
        for s in (1, 1, 2)
    ]
    assert np.array_equal(given[0], given[1]) and not np.array_equal(given[0], given[2])


def test_bad_banks():
    T, theta = small_transducer("representer"), torch.linspace(1, 2, 10)
    bank, observed = scalings(theta), scalings([1.5])
    good = {"T": T, "bank": bank, "parameters": theta, "observed": observed, "noise": 0.1, "k": 3}
    nothing = ExampleSet(observed.v, 0 * observed.u)
    elsewhere = ExampleSet(torch.ones(2, 2, 8, 8), torch.ones(2, 2, 8, 8))
    for problem, message in (
        ({"bank": bank.v}, "bank is of type Tensor; expected an ExampleSet"),
        (
            {"observed": None},
            "observed is of type NoneType; expected an ExampleSet of at least one pair",
        ),
        ({"observed": nothing}, r"observed.u\[0\] is zero"),
        ({"observed": elsewhere}, r"observed.v has shape \(2, 2, 8, 8\); this model expects"),
        ({"bank": elsewhere, "parameters": [1.0, 2.0], "k": 1}, r"bank.v has shape \(2, 2, 8, 8\)"),
        (
            {"parameters": theta[:9]},
            r"parameters have shape \(9,\); expected \(10,\), or \(10, p\)",
        ),
        ({"parameters": theta[:, None, None]}, r"parameters have shape \(10, 1, 1\)"),
        ({"parameters": theta * math.nan}, "not finite"),
        ({"k": 10}, "sets of k=10 pairs among 10 neighbours in a bank of 10"),
        ({"k": 0}, "k=0"),
        ({"among": 3}, "k=3 pairs among 3"),
        ({"among": 11}, "among 11 neighbours in a bank of 10"),
        ({"noise": -0.1}, "noise=-0.1"),
        ({"level": 1.0}, "level=1.0"),
        ({"samples": 0}, "samples=0 from chains=16; expected at least 1"),
        ({"chains": 0}, "chains=0"),
    ):
        with pytest.raises(TransduceError, match=message):
            dataset_posterior(**good | problem)
    with pytest.raises(TransduceError, match="no examples"):
        dataset_posterior(**good | {"observed": observed[:0]})
