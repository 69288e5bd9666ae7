"""Published test functions whose inputs are a few parameters and whose outputs are curves.

| name | inputs | output | source |
|---|---|---|---|
| arctangent | 2 | a curve on [0, 2 pi] | Auder (2011), thesis, Paris VI; R package sensitivity |
| sir | 3 | infected people over 100 days | Kermack and McKendrick (1927) |
| campbell | 4 | a curve over angles | Campbell, McKay and Williams (2006), RESS 91 |
| spill | 4 | concentration over time | Bliznyuk et al. (2008), JCGS 17 |
| hartmann | 5 | velocity and magnetic field across a channel | Glaws et al. (2017), SAM 10 |
| lotka-volterra | 6 | two populations over time | Lotka (1925), Volterra (1926) |
| campbell-line | 8 | a map of angles along its diagonal | Marrel et al. (2011), Environmetrics 22 |
| hiv | 10 | T cells over 2,000 days | Perelson, Kirschner and De Boer (1993), Math. Biosci. 114 |

Each function maps parameters, shape (n, p), to curves of 100 points, shape (n, 100), or two curves,
shape (n, 2, 100). Parameters are drawn uniformly from their ranges; `log` marks those that are
uniform in their logarithm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.integrate import solve_ivp

POINTS = 100
Curves = Float[np.ndarray, "n *outputs"]
Table = Float[np.ndarray, "n p"]


@dataclass(frozen=True)
class Study:
    """A test function.

    Attributes:
        name: of the function.
        ranges: least and largest value of each parameter, by name.
        x: positions of the points of the curves.
        run: maps parameters to curves.
        log: names of parameters that are uniform in their logarithm.
    """

    name: str
    ranges: dict[str, tuple[float, float]]
    x: Float[np.ndarray, " points"]
    run: Callable[[Table], Curves]
    log: tuple[str, ...] = ()

    def sample(self, n: int, generator: np.random.Generator) -> tuple[Table, Curves]:
        """n runs with random parameters."""
        columns = []
        for name, (low, high) in self.ranges.items():
            if name in self.log:
                column = np.exp(generator.uniform(np.log(low), np.log(high), n))
            else:
                column = generator.uniform(low, high, n)
            columns.append(column)
        parameters = np.stack(columns, 1)
        return parameters, self.run(parameters)


ANGLES = np.linspace(-90, 90, POINTS)
TURN = np.linspace(0, 2 * np.pi, POINTS)
ACROSS = np.linspace(-1, 1, POINTS)
MINUTES = np.linspace(0.3, 60, POINTS)
DAYS = np.linspace(0, 100, POINTS)
SEASONS = np.linspace(0, 15, POINTS)
LONG = np.linspace(0, 2000, POINTS)


def arctangent(p: Table) -> Curves:
    """u(t) = atan(a) cos t + atan(b) sin t."""
    a, b = np.arctan(p).T[..., None]
    return a * np.cos(TURN) + b * np.sin(TURN)


def campbell(p: Table) -> Curves:
    """u(t) = 10 + a exp(-(t - 10 b)^2 / (60 a^2 + c^2)) + (b + d) exp(0.002 a t)."""
    a, b, c, d = p.T[..., None]
    hill = np.exp(-((ANGLES - 10 * b) ** 2) / (60 * a**2 + c**2))
    return 10 + a * hill + (b + d) * np.exp(0.002 * a * ANGLES)


def campbell_line(p: Table) -> Curves:
    """The map of Marrel et al. on its diagonal, where both angles are t."""
    a, b, c, d, e, f, g, h = p.T[..., None]
    first = a * np.exp(-((ANGLES - 10 * b) ** 2) / (60 * a**2))
    second = (b + d) * np.exp(a * ANGLES / 500)
    third = e * (c - 2) * np.exp(-((ANGLES - 20 * f) ** 2) / (40 * e**2))
    return first + second + third + (f + h) * np.exp(g * ANGLES / 250)


def spill(p: Table) -> Curves:
    """Concentration at s = 1.5 after two spills, of mass m at s = 0 and t = 0, and at s = l and
    t = tau, with diffusion d; times (4 pi)^1/2."""
    m, d, l, tau = p.T[..., None]
    s = 1.5
    first = m / np.sqrt(d * MINUTES) * np.exp(-(s**2) / (4 * d * MINUTES))
    since = np.where(tau < MINUTES, MINUTES - tau, np.inf)
    second = m / np.sqrt(d * since) * np.exp(-((s - l) ** 2) / (4 * d * since))
    return first + second


def hartmann(p: Table) -> Curves:
    """Velocity and induced magnetic field across a channel: viscosity mu, density rho, pressure
    gradient k, resistivity eta, applied field b, half-width 1. The density has no effect."""
    mu, _, k, eta, b = p.T[..., None]
    ha = b / np.sqrt(eta * mu)
    velocity = k * np.sqrt(eta / mu) / b * (np.cosh(ha) - np.cosh(ha * ACROSS)) / np.sinh(ha)
    field = k / b * (np.sinh(ha * ACROSS) / np.sinh(ha) - ACROSS)
    return np.stack([velocity, field], 1)


def sir(p: Table) -> Curves:
    """Share of infected people: contact rate a, recovery rate r, share i infected at the start."""

    def slope(y: np.ndarray, q: np.ndarray) -> list[float]:
        s, i = y
        return [-q[0] * s * i, q[0] * s * i - q[1] * i]

    return _solved(slope, p, lambda q: [1 - q[2], q[2]], DAYS)[:, 1]


def lotka_volterra(p: Table) -> Curves:
    """Prey and predators: rates a, b, c, d, and both numbers at the start."""

    def slope(y: np.ndarray, q: np.ndarray) -> list[float]:
        prey, predators = y
        return [prey * (q[0] - q[1] * predators), predators * (q[2] * prey - q[3])]

    return _solved(slope, p, lambda q: [q[4], q[5]], SEASONS)


def hiv(p: Table) -> Curves:
    """Uninfected T cells after an infection. Parameters by their usual names; v0 is the number of
    virus particles at the start."""

    def slope(y: np.ndarray, q: np.ndarray) -> list[float]:
        t, latent, active, virus = y
        s, r, t_max, mu_t, mu_b, mu_v, k1, k2, count, _ = q
        return [
            s - mu_t * t + r * t * (1 - (t + latent + active) / t_max) - k1 * virus * t,
            k1 * virus * t - mu_t * latent - k2 * latent,
            k2 * latent - mu_b * active,
            count * mu_b * active - k1 * virus * t - mu_v * virus,
        ]

    return _solved(slope, p, lambda q: [1000.0, 0.0, 0.0, q[9]], LONG)[:, 0]


def _solved(
    slope: Callable[[np.ndarray, np.ndarray], list[float]],
    p: Table,
    start: Callable[[np.ndarray], list[float]],
    times: Float[np.ndarray, " points"],
) -> Float[np.ndarray, "n states points"]:
    """Solutions of an initial value problem for each row of parameters."""
    span = (float(times[0]), float(times[-1]))
    options = {"method": "LSODA", "rtol": 1e-9, "atol": 1e-9, "t_eval": times}
    return np.stack(
        [solve_ivp(lambda t, y, q=q: slope(y, q), span, start(q), **options).y for q in p]
    )


STUDIES = {
    study.name: study
    for study in (
        Study("arctangent", {"a": (-7, 7), "b": (-7, 7)}, TURN, arctangent),
        Study(
            "sir",
            {"contact": (0.15, 0.6), "recovery": (0.05, 0.15), "start": (1e-4, 1e-2)},
            DAYS,
            sir,
            log=("start",),
        ),
        Study("campbell", dict.fromkeys("abcd", (-1.0, 5.0)), ANGLES, campbell),
        Study(
            "spill",
            {"m": (7, 13), "d": (0.02, 0.12), "l": (0.01, 3), "tau": (30.01, 30.295)},
            MINUTES,
            spill,
        ),
        Study(
            "hartmann",
            {"mu": (0.05, 0.2), "rho": (1, 5), "k": (0.5, 3), "eta": (0.5, 3), "b": (0.1, 1)},
            ACROSS,
            hartmann,
            log=("mu", "rho", "k", "eta", "b"),
        ),
        Study(
            "lotka-volterra",
            {
                "a": (0.8, 1.2),
                "b": (0.08, 0.12),
                "c": (0.06, 0.09),
                "d": (1.2, 1.8),
                "prey": (8, 12),
                "predators": (4, 6),
            },
            SEASONS,
            lotka_volterra,
        ),
        Study("campbell-line", dict.fromkeys("abcdefgh", (-1.0, 5.0)), ANGLES, campbell_line),
        Study(
            "hiv",
            {
                "s": (8, 12),
                "r": (0.024, 0.036),
                "t_max": (1200, 1800),
                "mu_t": (0.016, 0.024),
                "mu_b": (0.192, 0.288),
                "mu_v": (1.92, 2.88),
                "k1": (1.92e-5, 2.88e-5),
                "k2": (2.4e-3, 3.6e-3),
                "count": (1120, 1680),
                "v0": (8e-4, 1.2e-3),
            },
            LONG,
            hiv,
        ),
    )
}
