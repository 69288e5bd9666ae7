"""Spaces: what goes in comes out, whatever the grid."""

import math
import warnings

import numpy as np
import pytest
import torch

from transduce import TransduceError
from transduce.spaces import (
    BranchTrunk,
    Euclidean,
    FourierModes,
    Padded,
    Patches,
    Region,
    SineModes,
    space_from_config,
)

MODES = [
    SineModes(32),
    SineModes(9, channels=2),
    FourierModes(32),
    FourierModes(32, closed=True),
    FourierModes((5, 4)),
    FourierModes((4, 3), channels=2),
]


def band_limited(space, n=3):
    """Coefficients that some function has: those of random ones, read off a fine grid."""
    c = torch.randn(n, space.size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return space.encode(space.decode(c, 97))


@pytest.mark.parametrize("space", MODES, ids=lambda space: str(space.config()))
class TestModes:
    def test_decode_encode_is_the_identity(self, space):
        c = band_limited(space)
        torch.testing.assert_close(space.encode(space.decode(c, 129)), c, rtol=0, atol=1e-12)

    def test_64_and_257_points_give_equal_coefficients(self, space):
        c = band_limited(space).float()
        points = (64, 257) if space.dims == 1 else ((64, 32), (33, 65))
        coarse, fine = (space.encode(space.decode(c, at)) for at in points)
        torch.testing.assert_close(coarse, fine, rtol=0, atol=1e-5)

    def test_coefficients_have_the_functions_mean_square(self, space):
        c = band_limited(space)
        f = space.decode(c, (400,) * space.dims) if space.dims == 1 else space.decode(c, (64, 64))
        f = f[..., :-1] if space.closed else f
        mean_square = f.square().flatten(1).mean(1) * space.channels
        torch.testing.assert_close(c.square().sum(1), mean_square)

    def test_scattered_sensors(self, space):
        c = band_limited(space) / 10
        x = torch.rand(
            400, space.dims, generator=torch.Generator().manual_seed(1), dtype=torch.float64
        )
        f = space.decode(c, x)
        assert f.shape[-1] == 400
        torch.testing.assert_close(
            space.decode(space.encode(f, x), 50), space.decode(c, 50), rtol=0, atol=1e-5
        )

    def test_config_builds_it_again(self, space):
        again = space_from_config(space.config())
        assert again.config() == space.config()
        assert again.size == space.size

    def test_precision_follows_the_input(self, space):
        c = band_limited(space)
        single = space.decode(c.float(), 80)
        assert single.dtype == torch.float32
        torch.testing.assert_close(space.decode(c, 80), single.double(), rtol=0, atol=1e-4)
        torch.testing.assert_close(space.encode(space.decode(c, 80)), c, rtol=0, atol=1e-12)


def test_fourier_modes_are_those_of_the_fft():
    f = torch.randn(3, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    c = FourierModes(10).encode(f)
    transform = torch.fft.rfft(f)[:, :10] / 64
    torch.testing.assert_close(c[:, 1:10], np.sqrt(2) * transform.real[:, 1:])
    torch.testing.assert_close(c[:, 11:], np.sqrt(2) * transform.imag[:, 1:])


def test_fourier_corner_blocks_in_2d():
    """Two 10 x 10 corners of two channels: 800 reals (supplement S.3.2)."""
    space = FourierModes((10, 10), channels=2)
    assert space.size == 800
    f = torch.randn(2, 2, 64, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    transform = torch.fft.rfft2(f)
    kept = torch.zeros_like(transform)
    for rows in (slice(0, 10), slice(-10, None)):
        kept[:, :, rows, :10] = transform[:, :, rows, :10]
    # The conjugate of (-10, 0), which a real function has too.
    kept[:, :, 10, 0] = transform[:, :, 10, 0]
    torch.testing.assert_close(
        space.decode(space.encode(f), (64, 64)), torch.fft.irfft2(kept, (64, 64))
    )


def test_a_coarse_grid_gives_what_it_can():
    """The carried modes are right, those above zero."""
    c = torch.zeros(1, 12, dtype=torch.float64)
    c[0, :7] = torch.arange(1, 8)
    space = SineModes(12)
    torch.testing.assert_close(space.encode(space.decode(c, 9)), c)


def test_branch_trunk_reads_any_grid():
    space = BranchTrunk(points=21)
    line = torch.linspace(0, 1, 21, dtype=torch.float64)[None]
    torch.testing.assert_close(space.encode(line), line)
    torch.testing.assert_close(
        space.encode(torch.linspace(0, 1, 7, dtype=torch.float64)[None]), line
    )
    x = torch.cat(
        [torch.tensor([0.0, 1.0]), torch.rand(9, generator=torch.Generator().manual_seed(0))]
    ).double()
    torch.testing.assert_close(space.encode(x[None], x), line)
    assert space.double().decode(torch.zeros(3, 21, dtype=torch.float64), torch.rand(5)).shape == (
        3,
        5,
    )


def test_euclidean_is_the_identity():
    space = Euclidean(5)
    f = torch.randn(3, 5)
    assert space.decode(space.encode(f), (5,)) is f
    with pytest.raises(TransduceError, match=r"\(n, 5\)"):
        space.check(torch.randn(3, 6), None, "v")
    with pytest.raises(TransduceError, match="no other points"):
        space.decode(f, 7)


@pytest.mark.parametrize(
    ("size", "shape", "said"),
    [
        (784, (784,), r"expects \(n, 784\)\. Give it as v\[None\]\.$"),
        (784, (3, 28, 28), r"Reshape it to \(3, 784\)\.$"),
        (784, (3, 1, 28, 28), r"Reshape it to \(3, 784\)\.$"),
        (784, (28, 28), r"Reshape it to \(1, 784\)\.$"),
        (784, (3, 28, 28, 3), r"Use a model made for vectors of that length\.$"),
        (5, (3, 6), r"Use a model made for vectors of that length\.$"),
        (
            10,
            (10, 1),
            r"of that length; classes go one-hot into 10 columns, or as labels to "
            r"transduce\.sklearn\.TransducerClassifier\.$",
        ),
        (10, (30, 3), r"of that length; classes go one-hot into 10 columns"),
        (1, (30,), r"Reshape it to \(30, 1\)\.$"),
    ],
)
def test_euclidean_says_what_helps(size, shape, said):
    with pytest.raises(TransduceError, match=said):
        Euclidean(size).check(torch.zeros(shape), None, "v")


def test_euclidean_takes_powers_that_keep_the_sign_and_can_be_undone():
    space = Euclidean(4, power=0.5)
    f = torch.tensor([[0.0, 0.25, -4.0, 1.0]], dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(
        space.encode(f), torch.tensor([[0.0, 0.5, -2.0, 1.0]], dtype=torch.float64)
    )
    torch.testing.assert_close(space.decode(space.encode(f), 4), f)
    assert torch.autograd.grad(space.encode(f).sum(), f)[0].tolist() == [[0.0, 1.0, 0.25, 0.5]]
    assert space_from_config(space.config()).power == 0.5
    with pytest.raises(TransduceError, match=r"power=0.* expected a number above 0"):
        Euclidean(4, power=0.0)


@pytest.mark.parametrize(
    ("space", "grids"),
    [
        (FourierModes(5), [(10,), (9,), (7,), (32,)]),
        (FourierModes(5, closed=True), [(11,), (12,), (33,)]),
        (FourierModes((3, 4)), [(6, 8), (6, 6), (5, 8), (16, 17)]),
        (FourierModes((3, 4), closed=True), [(7, 9), (9, 16)]),
    ],
    ids=str,
)
def test_encoding_a_grid_is_the_smallest_least_squares_solution(space, grids):
    """Also where the grid's last mode is its own mirror image; both ends of a closed grid count
    half."""
    for grid in grids:
        f = torch.randn(3, *grid, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
        weight = torch.ones(grid, dtype=torch.float64)
        if space.closed:
            for axis in range(space.dims):
                weight.select(axis, 0).div_(2)
                weight.select(axis, -1).div_(2)
        carried = (
            space.frequencies() <= torch.tensor([space.carried(points) for points in grid])
        ).all(1)
        root = weight.flatten().sqrt()
        best = (
            torch.linalg.pinv((space.basis(space.grid(grid)) * carried[:, None] * root).T)
            @ (f.flatten(1) * root).T
        )
        torch.testing.assert_close(space.encode(f), best.T, rtol=0, atol=1e-12)


def test_matrices_of_many_grids_do_not_pile_up(monkeypatch):
    """A server is asked for grids of every size; those used last stay at hand, and the answers are
    the same."""
    monkeypatch.setattr("transduce.spaces.modes.KEPT_BYTES", 100_000)
    space, c = SineModes(8), torch.randn(3, 8)
    for points in range(10, 1000):
        space.decode(c, points)
    assert sum(matrix.nbytes for matrix in space._matrices.values()) <= 100_000
    assert {("decode", (points,)) for points in (998, 999)} <= {
        key for key, _, _ in space._matrices
    }
    torch.testing.assert_close(space.decode(c, 33), SineModes(8).decode(c, 33))


def test_functions_that_do_not_vanish_at_the_ends_are_told_so():
    """Noise at the ends passes; a constant would be answered for as if it were zero there."""
    space, f = SineModes(16), torch.sin(math.pi * torch.linspace(0, 1, 33)).repeat(3, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        space.check(
            f + 0.01 * torch.randn(3, 33, generator=torch.Generator().manual_seed(0)), None, "v"
        )
        # Scattered: where the ends are is not known.
        space.check(f + 1, torch.linspace(0, 1, 33), "v")
    with pytest.warns(
        UserWarning,
        match=r"v is up to 1 at the ends of \[0, 1\]; .* Subtract a line.*model='general'",
    ):
        space.check(f + 1, None, "v")


@pytest.mark.parametrize("grid", [(6, 8), (5, 7), (1, 2)])
def test_decoding_undoes_encoding_where_the_maps_are_inverse(grid):
    space = Patches(2, 4, mean=3.0, unit=2.0).double()
    space.back.weight.data = torch.linalg.inv(space.embed.weight.data)
    space.back.bias.data = -space.back.weight.data @ space.embed.bias.data
    f = torch.randn(3, *grid, dtype=torch.float64)
    c = space.encode(f)
    assert c.shape == (3, -(-grid[0] // 2), -(-grid[1] // 2), 4)
    torch.testing.assert_close(space.decode(c, grid), f)


def test_patches_are_encoded_alike_wherever_they_are():
    space = Patches(3, 5)
    patch = torch.randn(3, 3)
    c = space.encode(patch.repeat(2, 4)[None])
    torch.testing.assert_close(c, c[:, :1, :1].expand_as(c))
    assert space_from_config(space.config()).config() == space.config()


def test_patches_of_bad_sizes_and_scattered_positions():
    with pytest.raises(TransduceError, match="positive numbers"):
        Patches(0, 4)
    with pytest.raises(TransduceError, match="expected fields on a grid"):
        Patches(2, 4).encode(torch.zeros(1, 4, 4), torch.zeros(16, 2))


def test_low_frequencies_come_first_and_like_ones_together():
    assert SineModes(3, channels=2).order().tolist() == [0, 3, 1, 4, 2, 5]
    space = FourierModes((2, 2), channels=2)
    frequencies = space.frequencies().repeat(2, 1)[space.order()]
    assert sorted(space.order().tolist()) == list(range(space.size))
    assert frequencies[:4].max() == 0 and (frequencies.amax(1).diff() >= 0).all()


def test_a_unit_is_that_of_coefficients_alone():
    plain, fine = FourierModes((3, 3), channels=2), FourierModes((3, 3), channels=2, unit=0.01)
    f = torch.randn(4, 2, 9, 9, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(fine.encode(f), 100 * plain.encode(f))
    assert torch.allclose(
        fine.decode(fine.encode(f), (12, 12)), plain.decode(plain.encode(f), (12, 12)), atol=1e-6
    )
    scattered = torch.rand(60, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    values = torch.randn(4, 2, 60, generator=torch.Generator().manual_seed(2))
    assert torch.allclose(
        fine.encode(values, scattered), 100 * plain.encode(values, scattered), rtol=1e-4, atol=1e-4
    )
    c = fine.encode(f)
    assert fine.isometry((9, 9)) * c.square().sum() == pytest.approx(
        fine.decode(c, (9, 9)).square().sum().item(), rel=1e-5
    )
    with pytest.raises(TransduceError, match="expected a positive number"):
        FourierModes((3, 3), unit=0.0)


PADDED = {
    "sine": (SineModes(5), (9,)),
    "fourier": (FourierModes((2, 2), channels=2), (2, 6, 6)),
    "vectors": (Euclidean(4, power=0.5), (4,)),
    "region": (Region((60.0, 50.0), (0.0, 10.0, 20.0)), (2, 3)),
}


@pytest.mark.parametrize("name", PADDED)
def test_padding_adds_zeros_that_decoding_drops(name):
    space, shape = PADDED[name]
    padded, f = Padded(space, 3), torch.randn(2, *shape, generator=torch.Generator().manual_seed(0))
    f[..., 0] = f[..., -1] = 0  # as sine modes expect
    c = padded.encode(f)
    assert padded.size == space.size + 3 and c.shape == (2, padded.size)
    torch.testing.assert_close(c[:, : space.size], space.encode(f))
    assert not c[:, space.size :].any()
    at = shape[-space.dims :]
    c[:, space.size :] = 7.0  # what layers write there is no part of the answer
    torch.testing.assert_close(padded.decode(c, at), space.decode(space.encode(f), at))
    assert padded.check(f, None, "v") == space.check(f, None, "v")
    again = space_from_config(padded.config())
    assert isinstance(again, Padded) and again.config() == padded.config()


def test_padding_comes_last_in_the_order_and_measures_like_its_space():
    order = Padded(SineModes(3, channels=2), 2).order().tolist()
    assert order == [*SineModes(3, channels=2).order().tolist(), 6, 7]
    padded = Padded(Region((60.0, 50.0), (0.0, 10.0)), 1)
    assert not padded.measured
    assert padded.measure(5 + torch.randn(9, 2, 2)) and padded.of.measured and padded.measured
    loaded = Padded(Region((60.0, 50.0), (0.0, 10.0)), 1)
    loaded.measured = True  # as a weight file sets it
    loaded.measure(5 + torch.randn(9, 2, 2))
    assert loaded.of.unit == 1  # the units of the weight file are kept
    with pytest.raises(TransduceError, match="extra=-1; expected a number of coefficients from 0"):
        Padded(SineModes(3), -1)


def test_unknown_spaces_are_refused():
    with pytest.raises(TransduceError, match="the space 'Wavelets' is not known; expected one of"):
        space_from_config({"space": "Wavelets"})
