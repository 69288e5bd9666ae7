"""A family that is quick to draw, and a training on it that takes a second."""

from dataclasses import dataclass

import torch

from transduce import ExampleSet, Task, Training
from transduce.spaces import SineModes


class Scalings:
    """The operators v -> a v, mode by mode: a family that is quick to draw."""

    def __repr__(self):
        return "Scalings()"

    def sample_task(self, n, m, generator):
        space = SineModes(12)
        v = torch.randn(n + m, 12, generator=generator) / torch.arange(1, 13)
        u = v * torch.rand(12, generator=generator)
        v, u = space.decode(v, 33), space.decode(u, 33)
        return Task(ExampleSet(v[:n], u[:n]), ExampleSet(v[n:], u[n:]))


class Spoiled(Scalings):
    """The same family once its values have run away."""

    def sample_task(self, n, m, generator):
        task = super().sample_task(n, m, generator)
        return Task(
            ExampleSet(1e30 * task.examples.v, task.examples.u),
            ExampleSet(1e30 * task.queries.v, task.queries.u),
        )


@dataclass
class InNumpy(Scalings):
    """The same family, as most people would write it: in double precision."""

    points: int = 33

    def __repr__(self):
        return "InNumpy()"

    def sample_task(self, n, m, generator):
        task = super().sample_task(n, m, generator)
        parts = [
            ExampleSet(
                f.v.double().numpy()[:, : self.points], f.u.double().numpy()[:, : self.points]
            )
            for f in (task.examples, task.queries)
        ]
        return Task(*parts)


TRAINING = Training(
    steps=12,
    tasks=2,
    n=(3, 6),
    queries=2,
    warmup=2,
    checkpoint_every=3,
    validate_every=6,
    validation_tasks=2,
    average=0.9,
)


def parameters(T):
    return torch.cat([p.detach().flatten() for p in T.parameters()])
