"""Which examples follow each other: pair j follows pair i if v_j is u_i, exactly.

A trajectory of pairs (s_t, s_(t+1)) is one chain, one of pairs (s_t, s_(t+5)) five of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from ..inputs import Pairs

NONE = -1  # follows a pair that nothing follows


@dataclass(frozen=True)
class Chains:
    """The examples as parts of trajectories.

    Attributes:
        following: number of the pair that follows each; -1 if there is none.
        age: how many pairs come before each in its chain.
        length: of the chain of each.
    """

    following: Int[np.ndarray, " n"]
    age: Int[np.ndarray, " n"]
    length: Int[np.ndarray, " n"]

    @property
    def longest(self) -> int:
        """The number of pairs in the longest chain."""
        return int(self.length.max())

    def before(self, share: float) -> Bool[np.ndarray, " n"]:
        """Whether a pair is in the first part of its chain."""
        return self.age < np.maximum(1, np.floor(share * self.length))

    def truth(
        self, rows: Int[np.ndarray, " m"], u: Float[np.ndarray, "n c p"], steps: int
    ) -> Float[np.ndarray, "m t c p"]:
        """The states after those of these rows; NaN beyond the end of a chain."""
        found = np.full((len(rows), steps, *u.shape[1:]), np.nan)
        at = rows.copy()
        for step in range(steps):
            known = at != NONE
            found[known, step] = u[at[known]]
            at = np.where(known, self.following[at], NONE)
        return found


def chains_of(pairs: Pairs) -> Chains:
    """The chains among examples. Of equal states the first counts, and a state that is its own
    image is followed by nothing."""
    v, u = (np.ascontiguousarray(f.array) + 0.0 for f in (pairs.v, pairs.u))
    own = pairs.parameters
    tails = [b""] * len(v) if own is None else [row.tobytes() for row in own]
    known: dict[bytes, int] = {}
    for i in range(len(v) - 1, -1, -1):
        known[v[i].tobytes() + tails[i]] = i
    following = np.array([known.get(u[i].tobytes() + tails[i], NONE) for i in range(len(u))])
    following[following == np.arange(len(u))] = NONE
    return _measured(_without_merging(following))


def _without_merging(following: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Each pair follows one pair at most."""
    _, first = np.unique(following, return_index=True)
    kept = np.full_like(following, NONE)
    kept[first] = following[first]
    return kept


def _measured(following: Int[np.ndarray, " n"]) -> Chains:
    """The chains with ages and lengths. Closed orbits begin at their first row."""
    n = len(following)
    age, length = np.zeros(n, int), np.zeros(n, int)
    starts = np.setdiff1d(np.arange(n), following)
    for start in [*starts.tolist(), *range(n)]:
        if length[start]:
            continue
        chain = [start]
        while (after := int(following[chain[-1]])) not in (NONE, start):
            chain.append(after)
        following[chain[-1]] = NONE
        age[chain], length[chain] = np.arange(len(chain)), len(chain)
    return Chains(following, age, length)
