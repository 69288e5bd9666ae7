"""Inversion: posteriors that are known in closed form or by quadrature, and truths that bands must
hold."""

import math

import numpy as np
import pytest
import torch
import xarray as xr
from conftest import small_transducer

from transduce import ExampleSet, TransduceError, Transducer
from transduce.families import AdvectionDiffusionReaction
from transduce.families.adr import boundary_mask
from transduce.families.burgers import Burgers2dOperator
from transduce.random_fields import generator_for
from transduce.spaces import SineModes
from transduce.uncertainty import many
from transduce.uncertainty.chains import band, effective_sizes
from transduce.uncertainty.inversion import GaussianPrior, errors_of, invert


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=seeded(seed))


@pytest.fixture
def linear():
    """A linear operator on 20 points, a prior, two observed functions, and the mean and covariance
    of v given each."""
    prior, B, noise = GaussianPrior.interval(20, 0.3), normal(15, 20, seed=1) / 5, 0.1
    u = prior.sample(2, seeded(2)) @ B.T + noise * normal(2, 15, seed=3)
    K = prior.root.T @ prior.root
    gain = K @ B.T @ torch.linalg.inv(B @ K @ B.T + noise**2 * torch.eye(15))
    return prior, lambda v: v @ B.T, u, noise, u @ gain.T, K - gain @ B @ K


def test_the_most_probable_input_of_a_linear_operator_is_the_posterior_mean(linear):
    prior, O, u, noise, mean, covariance = linear
    found = invert(O, u, prior, noise=noise, level=0.9)
    torch.testing.assert_close(found.v, mean, rtol=1e-6, atol=1e-8)
    half = 1.6448536 * covariance.diagonal().sqrt()
    torch.testing.assert_close(found.high, mean + half, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(found.low, mean - half, rtol=1e-6, atol=1e-6)
    assert found.samples.shape == (2, 0, 20)


def test_samples_of_a_linear_operator_are_the_posterior(linear):
    prior, O, u, noise, mean, covariance = linear
    found = invert(O, u, prior, noise=noise, samples=4000, chains=40, level=0.9, generator=seeded())
    drawn, deviation = found.samples, covariance.diagonal().sqrt()
    assert drawn.shape == (2, 4000, 20)
    assert ((drawn.mean(1) - mean) / deviation).abs().max() < 6 / math.sqrt(4000)
    assert (drawn.std(1) / deviation - 1).abs().max() < 0.1
    cross = torch.cov(drawn[0].T) / deviation / deviation[:, None]
    assert (cross - covariance / deviation / deviation[:, None]).abs().max() < 0.12
    assert ((found.high - mean) / deviation - 1.645).abs().max() < 0.2
    assert (found.acceptance[:, 0] > 0.9999).all() and (found.effective > 2500).all()


@pytest.mark.parametrize(
    ("O", "u"), [(lambda v: torch.tanh(2 * v), 0.9), (torch.exp, 1.5)], ids=["long tail", "skewed"]
)
def test_samples_have_the_tails_that_laplace_has_not(O, u):
    """One number, so that the posterior is known by quadrature."""
    x = torch.linspace(-8, 8, 100001, dtype=torch.float64)
    p = torch.softmax(-((u - O(x)) ** 2) / (2 * 0.2**2) - x**2 / 2, 0)
    mean = (p * x).sum()
    deviation = (p * (x - mean) ** 2).sum().sqrt()
    prior = GaussianPrior(torch.ones(1, 1, dtype=torch.float64))
    observed = torch.tensor([[u]], dtype=torch.float64)
    found = invert(O, observed, prior, noise=0.2, samples=60000, chains=300, generator=seeded())
    assert float(found.samples.mean() - mean) / float(deviation) == pytest.approx(0, abs=0.06)
    assert float(found.samples.std() / deviation) == pytest.approx(1, abs=0.05)
    assert found.low.item() == pytest.approx(x[(p.cumsum(0) < 0.05).sum()].item(), abs=0.05)
    assert found.high.item() == pytest.approx(x[(p.cumsum(0) < 0.95).sum()].item(), abs=0.08)


def operators(pairs):
    """Of each kind of kernel, all differentiable in the query."""
    yield small_transducer("representer").regress(ExampleSet(*pairs[:2]))
    yield small_transducer("spectral").regress(ExampleSet(*pairs[:2]))
    task = AdvectionDiffusionReaction().sample_task(30, 1, generator_for("validation", 62))
    yield Transducer.from_pretrained("adr-softmax").double().regress(task.examples)


def descended(E, xi):
    """E where another optimiser ends that starts from xi."""
    xi = xi.clone().requires_grad_()
    optimiser = torch.optim.LBFGS([xi], max_iter=40, line_search_fn="strong_wolfe")

    def closure():
        optimiser.zero_grad()
        energy = E(xi).sum()
        energy.backward()
        return energy

    optimiser.step(closure)
    return E(xi).detach()


def test_nothing_near_the_most_probable_input_is_more_probable(pairs):
    for O in operators(pairs):
        x = torch.linspace(0, 1, O.examples.v.shape[1], dtype=torch.float64)
        prior, noise = GaussianPrior.interval(len(x), 0.3, boundary_mask(x)), 0.05
        u = O(prior.sample(4, seeded()))
        u = u + noise * normal(*u.shape)

        def E(xi, O=O, u=u, root=prior.root, noise=noise):
            return ((u - O(xi @ root)) ** 2).sum(1) / (2 * noise**2) + xi.square().sum(1) / 2

        xi = torch.linalg.lstsq(prior.root.T, invert(O, u, prior, noise=noise).v.T).solution.T
        assert (E(xi) < E(torch.zeros_like(xi)) - 1).all()
        torch.testing.assert_close(descended(E, xi), E(xi), rtol=0, atol=2e-3)


def test_a_search_that_does_not_settle_says_so():
    prior = GaussianPrior.interval(20, 0.3)
    with pytest.warns(UserWarning, match="a step still promised"):
        invert(
            lambda v: torch.sin(300 * v), torch.ones(1, 20, dtype=torch.float64), prior, noise=1e-3
        )


def test_bands_hold_initial_states_of_adr():
    """From final states with noise, through an operator regressed from 50 examples."""
    family = AdvectionDiffusionReaction()
    task = family.sample_task(50, 4, generator_for("validation", 61))
    O = Transducer.from_pretrained("adr").regress(task.examples)
    prior = GaussianPrior.interval(101, family.v_length_scale, boundary_mask(family.x))
    noise = 0.05 * float(task.queries.u.square().mean().sqrt())
    u = task.queries.u + noise * normal(4, 101).float()
    found = invert(O, u, prior, noise=noise, samples=160, chains=8, generator=seeded())
    v = task.queries.v
    inside = ((found.low <= v) & (v <= found.high))[:, 1:-1].double().mean()
    assert 0.75 < inside < 0.99
    assert (found.high - found.low).mean() < 0.35 * v.abs().mean()
    assert (found.v - v).norm() < 0.15 * v.norm()
    assert (found.acceptance[:, 0] > 0.8).all() and (found.effective > 40).all()
    laplace = invert(O, u, prior, noise=noise)
    assert ((found.high - found.low).mean() / (laplace.high - laplace.low).mean()) == pytest.approx(
        1, abs=0.15
    )


def test_the_start_of_a_burgers_solution_is_found():
    """Two components, and the solver itself as the operator."""
    O = Burgers2dOperator(0.3, increment=6.0, resolution=12, dt=2.0)
    prior = GaussianPrior.periodic(12, 0.35, amplitude=0.3, channels=2)
    v = prior.sample(2, seeded(4))
    u = O(v)
    noise = 0.02 * float(u.square().mean().sqrt())
    found = invert(O, u + noise * normal(*u.shape), prior, noise=noise)
    assert (found.v - v).norm() < 0.05 * v.norm() < (u - v).norm()
    assert 0.8 < ((found.low <= v) & (v <= found.high)).double().mean() < 0.97


def test_errors_of_the_operator_count_as_noise(linear):
    """C = noise^2 I + sum_j r_j r_j^T, in the closed form of a linear operator."""
    prior, O, u, noise, *_ = linear
    r = normal(6, 15, seed=7) / 6
    C, K = noise**2 * torch.eye(15) + r.T @ r, prior.root.T @ prior.root
    B = O(torch.eye(20, dtype=torch.float64)).T
    gain = K @ B.T @ torch.linalg.inv(B @ K @ B.T + C)
    found = invert(O, u, prior, noise=noise, errors=r)
    torch.testing.assert_close(found.v, u @ gain.T, rtol=1e-5, atol=1e-7)
    half = 1.6448536 * (K - gain @ B @ K).diagonal().sqrt()
    torch.testing.assert_close(found.high - found.v, half.expand(2, -1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("together", [1, 1 << 22])
def test_errors_of_an_operator_have_the_variance_of_what_it_misses(pairs, monkeypatch, together):
    """Each example left out on its own, in one block of regressions and in several: mode by mode,
    nearly all of it."""
    monkeypatch.setattr(many, "TOGETHER", together)
    v, u, _ = pairs
    O, space = small_transducer("representer").regress(ExampleSet(v, u)), SineModes(12)
    missed = torch.cat([O.drop(i)(v[i : i + 1]) - u[i : i + 1] for i in range(9)])
    modes = errors_of(O)
    expected = space.encode(missed).square().mean(0)
    found = space.encode(modes).square().sum(0)
    assert 1 < len(modes) <= 12
    assert (found <= (1 + 1e-4) * expected).all()
    assert found.sum() == pytest.approx(float(expected.sum()), rel=2e-3)
    K = modes @ modes.T
    assert (K - torch.diag(K.diagonal())).abs().max() < 1e-6 * K.max()


def test_where_nothing_is_observed_the_prior_stays():
    prior = GaussianPrior.interval(33, 0.2)
    found = invert(lambda v: v[:, :3], torch.ones(1, 3, dtype=torch.float64), prior, noise=0.01)
    width = (found.high - found.low)[0]
    assert width[:3].max() < 0.04
    assert width[-5:].min() > 0.999 * 2 * 1.6448
    torch.testing.assert_close(
        found.v[0, :3], torch.ones(3, dtype=torch.float64), rtol=0, atol=0.02
    )


def test_priors_are_the_fields_they_are_named_after():
    prior, x = GaussianPrior.interval(41, 0.2), torch.linspace(0, 1, 41, dtype=torch.float64)
    torch.testing.assert_close(
        prior.root.T @ prior.root, torch.exp(-((x - x[:, None]) ** 2) / 0.08), rtol=0, atol=1e-6
    )
    prior, x = GaussianPrior.periodic(16, 0.2, amplitude=0.5, channels=2), torch.arange(16) / 16
    covariance = torch.einsum("dcxy,dezw->cxyezw", prior.root, prior.root)
    along = sum(torch.exp(-((x - j) ** 2) / 0.08) for j in range(-2, 3)).double()
    torch.testing.assert_close(
        covariance[0, 0, 0, 0, :, 0], 0.25 * along / along[0], rtol=0, atol=1e-5
    )
    assert covariance[0, :, :, 1].abs().max() == 0
    drawn = prior.sample(4000, seeded())
    assert drawn.shape == (4000, 2, 16, 16)
    assert drawn.var(0).mean() == pytest.approx(0.25, rel=0.05)


def test_answers_are_of_the_kind_that_was_given(linear):
    prior, O, u, noise, mean, _ = linear
    bare = invert(O, u.numpy(), prior, noise=noise, samples=16)
    assert all(isinstance(f, np.ndarray) for f in (bare.v, bare.low, bare.high, bare.samples))
    np.testing.assert_allclose(bare.v, mean.numpy(), rtol=1e-5, atol=1e-7)
    named = invert(
        O, xr.DataArray(u.numpy(), dims=("time", "x"), coords={"time": [3, 5]}), prior, noise=noise
    )
    assert named.v.dims[0] == "time" and list(named.low.time) == [3, 5]
    single = invert(O, u.float(), prior, noise=noise)
    assert single.v.dtype == torch.float32


def test_a_seed_gives_the_same_samples(linear):
    prior, O, u, noise, *_ = linear
    first, again, other = (
        invert(O, u, prior, noise=noise, samples=40, generator=seeded(s)).samples for s in (1, 1, 2)
    )
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_bad_inversions(linear, pairs):
    prior, O, u, noise, *_ = linear
    for problem, message in (
        ({"noise": 0.0}, r"noise=0.0; expected the size of the errors"),
        ({"noise": math.inf}, "noise=inf"),
        (
            {"noise": 0.1, "level": 90.0},
            r"level=90.0; expected a share of the values between 0 and 1",
        ),
        ({"noise": 0.1, "samples": -1}, "samples=-1 from chains=16; expected at least 0"),
        ({"noise": 0.1, "samples": 10, "chains": 0}, "chains=0"),
    ):
        with pytest.raises(TransduceError, match=message):
            invert(O, u, prior, **problem)
    for wrong in (u[0], u[:, :10], u[:0]):
        with pytest.raises(TransduceError, match=r"u_observed has shape .*; expected \(m, 15\)"):
            invert(O, wrong, prior, noise=noise)
    with pytest.raises(TransduceError, match="not finite"):
        invert(O, u * math.nan, prior, noise=noise)
    with pytest.raises(TransduceError, match="carry no gradient"):
        invert(lambda v: O(v.detach()), u, prior, noise=noise)
    regressed = small_transducer().regress(ExampleSet(*pairs[:2]))
    for other in (GaussianPrior.periodic(8, 0.3), GaussianPrior.interval(4, 0.3)):
        with pytest.raises(
            TransduceError,
            match=r"functions of the prior have shape .*, which O does not take \(v has",
        ):
            invert(regressed, pairs[1], other, noise=noise)
    with pytest.raises(TransduceError, match=r"errors have shape \(4, 20\), u_observed \(2, 15\)"):
        invert(O, u, prior, noise=noise, errors=torch.ones(4, 20))
    with pytest.raises(TransduceError, match="1 example cannot be left out of itself"):
        errors_of(small_transducer().regress(ExampleSet(pairs[0][:1], pairs[1][:1])))
    for root in (torch.ones(3), torch.ones(0, 3)):
        with pytest.raises(TransduceError, match="root has shape"):
            GaussianPrior(root)


@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_effective_sizes_of_chains_that_remember(rho):
    """Autoregressive chains: tau = (1 + rho) / (1 - rho)."""
    eta, states = normal(4000, 8, 3), [torch.zeros(8, 3, dtype=torch.float64)]
    for each in eta:
        states.append(rho * states[-1] + math.sqrt(1 - rho**2) * each)
    sizes = effective_sizes(torch.stack(states[200:]))
    assert sizes.shape == (3,)
    assert sizes.mean() == pytest.approx(3801 * 8 * (1 - rho) / (1 + rho), rel=0.12)


def test_effective_sizes_of_chains_that_do_not_mix():
    apart = normal(200, 4, 1) + 10 * torch.arange(4)[:, None]
    assert effective_sizes(apart) < 10
    assert effective_sizes(torch.ones(50, 4, 2)).tolist() == [1, 1]
    assert effective_sizes(torch.zeros(2, 4)).item() == 1


def test_band_leaves_as_much_below_as_above():
    low, high = band(torch.arange(101.0)[:, None].expand(-1, 2), 0.9)
    assert low.tolist() == pytest.approx([5, 5]) and high.tolist() == pytest.approx([95, 95])
