"""Gaussian fields have the covariance they claim, and seeds are reproducible."""

import pytest
import torch

from transduce.random_fields import SPLITS, gaussian_field, generator_for, seed_for


@pytest.mark.parametrize("length_scale", [0.1, 0.2, 0.5])
def test_covariance_is_squared_exponential(length_scale):
    n, points = 20_000, 21
    fields = gaussian_field(n, points, length_scale, generator_for("train", 0))
    x = torch.linspace(0, 1, points, dtype=torch.float64)
    expected = torch.exp(-((x[:, None] - x[None, :]) ** 2) / (2 * length_scale**2))
    off = (fields.T @ fields / n - expected).abs().max()
    assert off < 5 * (2 / n) ** 0.5  # five standard deviations of a sample variance
    assert fields.mean(0).abs().max() < 5 / n**0.5


@pytest.mark.parametrize("length_scale", [0.05, 0.2])
def test_fields_are_smooth(length_scale):
    """The derivative of g has variance 1 / l^2, and finer grids see the same one."""
    for points in (201, 401):
        fields = gaussian_field(2000, points, length_scale, generator_for("train", 1))
        slope = fields.diff(dim=1) * (points - 1)
        assert abs(slope.square().mean().item() * length_scale**2 - 1) < 0.1
    bend = fields.diff(n=2, dim=1).abs().max() * 400**2
    assert bend < 10 * 3**0.5 / length_scale**2  # |g''| has standard deviation sqrt(3) / l^2


def test_fields_are_double_and_reproducible():
    fields = [gaussian_field(3, 101, 0.2, generator_for("test", 4)) for _ in range(2)]
    assert fields[0].shape == (3, 101) and fields[0].dtype == torch.float64
    assert torch.equal(*fields)


def test_a_seed_tells_its_split():
    for split, number in SPLITS.items():
        assert {seed_for(split, i, j) >> 30 for i in range(20) for j in range(20)} == {number}
    assert seed_for("train", 1, 2) != seed_for("train", 2, 1)
    assert generator_for("test", 5).initial_seed() == seed_for("test", 5)
