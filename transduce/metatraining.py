"""Meta-training: learn to regress by regressing (equation 7).

    J(theta) = E_tasks [ mean_j |T_theta(D_train)(v_j) - O(v_j)| / |O(v_j)| ]

Each step draws n, then tasks of n examples and m queries from the family, and descends on the
queries' relative error. Everything a step draws is seeded by (seed, step, task), so a run that is
killed and started again from its last checkpoint ends with the same bits, and p processes with t
tasks each take the step of one process with p t."""

from __future__ import annotations

import inspect
import json
import math
import os
import zipfile
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from .baselines import MetaLearner
from .files import replacing
from .kernels import left_by_lines
from .optimisers import make_optimisers
from .progress import Journal
from .random_fields import generator_for, seed_for
from .transducer import Transducer
from .types import OperatorFamily, Task, TransduceError, to_tensor

LOSSES = ("relative_l2", "relative_mse", "squared", "log_l2", "cross_entropy", "lesson")
Learner = Transducer | MetaLearner


@dataclass(frozen=True)
class Training:
    """How to meta-train.

    lr: of AdamW; muon_lr: of Muon, which trains the matrices unless it is 0. tasks: per step and
    process. n: the range that example counts are drawn from, evenly in log n. queries: of each
    task. schedule: after `warmup` steps, "cosine" to zero or "halving" six times. clip: the
    gradient norm's bound. average: the decay of an exponential average of the weights, which then
    are the ones validated and kept; 0 for none. standardise: measure inputs in units of their
    spread over the family. loss: "relative_l2"; its square "relative_mse", which is what we report
    but in training lets the few hardest functions drown the others; "squared", the paper's sum of
    squared errors, to which large functions matter more; or "log_l2", the logarithm of a step's
    mean relative_l2, to which every n matters alike however small its error has become;
    "cross_entropy", of rivals that answer with the probabilities of classes; or "lesson", in which
    F alone learns, with init="descent", to write to memory what the kernels cannot regress without
    it. noise: the share of steps whose example outputs carry white noise, of 0.1 to 10 % of their
    root mean square. left_out: whether examples count as queries too, each left out: of kernels
    whose last layer says what then is left of it, and at no cost. kernel_rate: a factor of both
    rates for the weights of kernels, beside those of F and G."""

    steps: int
    lr: float = 1e-3
    muon_lr: float = 0.02
    tasks: int = 8
    n: tuple[int, int] = (20, 100)
    queries: int = 16
    schedule: str = "cosine"
    warmup: int = 200
    clip: float = 1.0
    average: float = 0.0
    seed: int = 0
    validate_every: int = 500
    checkpoint_every: int = 100
    validation_tasks: int = 32
    standardise: bool = True
    loss: str = "relative_l2"
    noise: float = 0.0
    left_out: bool = False
    kernel_rate: float = 1.0

    def __post_init__(self) -> None:
        if self.schedule not in ("cosine", "halving"):
            raise TransduceError(f"schedule={self.schedule!r}; expected 'cosine' or 'halving'.")
        if self.loss not in LOSSES:
            raise TransduceError(f"loss={self.loss!r}; expected one of {', '.join(LOSSES)}.")
        if not 0 <= self.noise <= 1:
            raise TransduceError(f"noise={self.noise}; expected a share of the steps, from 0 to 1.")
        if not self.kernel_rate >= 0:
            raise TransduceError(
                f"kernel_rate={self.kernel_rate}; expected a factor of the rates, from 0."
            )
        counts = (
            "steps",
            "tasks",
            "queries",
            "validate_every",
            "checkpoint_every",
            "validation_tasks",
        )
        if min(getattr(self, name) for name in counts) < 1 or not 1 <= self.n[0] <= self.n[1]:
            raise TransduceError(
                f"{', '.join(counts)} are at least 1 and n is (low, high) with 1 <= low <= high; "
                f"received {self}."
            )

    def factor(self, step: int) -> float:
        """What the learning rates are multiplied by at a step."""
        warm = min(1.0, (step + 1) / max(self.warmup, 1))
        done = step / self.steps
        fall = (
            (1 + math.cos(math.pi * done)) / 2
            if self.schedule == "cosine"
            else 0.5 ** int(7 * done)
        )
        return warm * fall


class Episode(nn.Module):
    """The relative squared error of each query of a batch of tasks; and, if asked for, of each
    example when it is left out."""

    def __init__(self, T: Learner, left_out: bool = False):
        super().__init__()
        self.T, self.left_out = T, left_out

    def forward(
        self, v: Tensor, u: Tensor, v_query: Tensor, u_query: Tensor, x: Tensor | None = None
    ) -> Tensor:
        T = self.T
        target = T.U.encode(u, x)
        kept = T.condition(T.V.encode(v, x), target)
        u_hat = T.query(kept, T.V.encode(v_query, x))[-1]
        grid = u_query.shape[2 + (T.U.channels > 1) :]
        error = (
            (T.U.decode(u_hat, tuple(grid) if x is None else x) - u_query)
            .flatten(2)
            .square()
            .sum(-1)
        )
        error = error / u_query.flatten(2).square().sum(-1).clamp(min=1e-12)
        if not self.left_out:
            return error
        return torch.cat(
            [error, kept[-1].residual.square().sum(-1) / target.square().sum(-1).clamp(min=1e-12)],
            1,
        )


class Surprise(nn.Module):
    """-log of the probability that each query's own class is given."""

    def __init__(self, T: MetaLearner):
        super().__init__()
        self.T = T

    def forward(
        self, v: Tensor, u: Tensor, v_query: Tensor, u_query: Tensor
    ) -> Float[Tensor, "b m"]:
        p = self.T.query(self.T.condition(v, u), v_query)[-1]
        return -(p * u_query).sum(-1).clamp(min=1e-12).log()


class Lesson(nn.Module):
    """The squared error of F where it is to leave v as it is and to write y to memory (see
    kernels/descent.py), for each pair."""

    def __init__(self, T: Transducer):
        super().__init__()
        layers: list[Any] = list(T.layers)
        self.learns = nn.ModuleList(layer.F for layer in layers)
        self.of = (
            T,
            layers[0].kappa,
        )  # in a tuple, so that their other parameters are not ones of the lesson

    def forward(
        self, v: Tensor, u: Tensor, v_query: Tensor, u_query: Tensor, x: Tensor | None = None
    ) -> Tensor:
        T, kappa = self.of
        v, u = T.V.encode(torch.cat([v, v_query], 1), x), T.U.encode(torch.cat([u, u_query], 1), x)
        kept = v / T.spread
        target = torch.cat([kept, left_by_lines(kappa, T.V, T.U, kept, u)], -1)
        errors = [
            (stream[..., : target.shape[-1]] - target).square().mean(-1)
            for stream in T.transformed(v)
        ]
        return torch.stack(errors).mean(0)


def stack(tasks: list[Task]) -> dict[str, Tensor]:
    """Tasks of equal n and m as one batch."""
    parts = {
        "v": ("examples", "v"),
        "u": ("examples", "u"),
        "v_query": ("queries", "v"),
        "u_query": ("queries", "u"),
    }
    batch = {
        key: torch.stack([to_tensor(getattr(getattr(task, a), b), key) for task in tasks])
        for key, (a, b) in parts.items()
    }
    x = tasks[0].examples.x
    return batch if x is None else {**batch, "x": to_tensor(x, "x")}


def draw(family: OperatorFamily, training: Training, step: int, rank: int = 0) -> dict[str, Tensor]:
    """The tasks that process `rank` sees at a step."""
    low, high = training.n
    share, noisy, level = torch.rand(
        3, generator=generator_for("train", training.seed, step)
    ).tolist()
    n = min(high, int(low * ((high + 1) / low) ** share))
    numbers = range(rank * training.tasks, (rank + 1) * training.tasks)
    try:
        batch = stack(
            [
                family.sample_task(
                    n, training.queries, generator_for("train", training.seed, step, i)
                )
                for i in numbers
            ]
        )
    except TransduceError as error:
        raise TransduceError(
            f"at step {step}, batch seed {seed_for('train', training.seed, step)}: {error}"
        ) from None
    if noisy < training.noise:
        generators = [generator_for("train", training.seed, step, i, 1) for i in numbers]
        batch["u"] = torch.stack(
            [
                with_noise(u, 10 ** (2 * level - 3), g)
                for u, g in zip(batch["u"], generators, strict=True)
            ]
        )
    return batch


def with_noise(u: Tensor, level: float, generator: torch.Generator) -> Tensor:
    """u with white noise of `level` times its root mean square."""
    noise = torch.randn(u.shape, dtype=torch.float64, generator=generator).to(u)
    return u + level * u.square().mean().sqrt() * noise


def metatrain(
    T: Learner,
    family: OperatorFamily,
    training: Training,
    *,
    validation: OperatorFamily | None = None,
    out: str | Path | None = None,
    fabric: Any = None,
    until: float = 0.0,
    checkpointing: bool = False,
) -> float | None:
    """Meta-train T in place; returns its validation error, the mean relative squared error at n =
    50 or the nearest trained n.

    validation: the family of the validation tasks, drawn with seeds that training never uses; give
    the family itself when it draws new operators. out: a folder for checkpoint, log and TensorBoard
    events; started again with the same folder, the run goes on where its last checkpoint stood,
    even with more `steps`. fabric: a Lightning Fabric that was set up otherwise. until: stop as
    soon as the validation error is this small. checkpointing: hold less memory in a step, for more
    time: of each layer what goes in, from which the rest is computed anew for the gradient, which
    stays the same."""
    fabric = fabric or make_fabric()
    T.to(fabric.device).train()
    if isinstance(T, Transducer):
        T.checkpointing = checkpointing
    elif checkpointing:
        raise TransduceError(
            f"checkpointing=True with a {type(T).__name__}; expected a Transducer. Leave it out."
        )
    prepare(T, family, training)
    run = Run(T, training, described(family), fabric.world_size)
    folder = None if out is None else Path(out)
    if folder is not None and (folder / "checkpoint.pt").exists():
        run.restore(folder / "checkpoint.pt")
    tasks = [] if validation is None else validation_tasks(validation, training)
    model = run.set_up(fabric)
    error = None
    with Journal(
        folder,
        training.steps,
        run.step,
        quiet=fabric.global_rank > 0,
        tasks=training.tasks * fabric.world_size,
    ) as journal:
        while run.step < training.steps:
            batch = draw(family, training, run.step, fabric.global_rank)
            loss = run.advance(
                fabric, model, {key: value.to(T.spread) for key, value in batch.items()}
            )
            at_end = run.step == training.steps
            measured = bool(tasks) and (run.step % training.validate_every == 0 or at_end)
            error = validate(run.averaged.best(T), tasks) if measured else error
            journal.step(
                run.step,
                loss=loss,
                lr=training.lr * training.factor(run.step - 1),
                error=error,
                measured=measured,
            )
            reached = fabric.broadcast(measured and error is not None and error <= until)
            if (
                folder is not None
                and fabric.is_global_zero
                and (run.step % training.checkpoint_every == 0 or at_end or reached)
            ):
                run.save(folder / "checkpoint.pt")
            if reached:
                break
    run.averaged.copy_to(T)
    T.eval()
    return validate(T, tasks) if tasks and error is None else error


@torch.no_grad()
def prepare(T: Learner, family: OperatorFamily, training: Training) -> None:
    """See that the family's functions fit the model, and measure their spread if that was never
    done."""
    if training.left_out and not T.leaves_out:
        raise TransduceError(
            "left_out=True counts examples that are left out, which this model cannot do; "
            "expected one that ends in a kernel "
            "that solves, such as the representer, or in a prior, with G=False. Leave it out."
        )
    if (training.loss == "cross_entropy") != isinstance(T, MetaLearner):
        raise TransduceError(
            f"loss={training.loss!r} with a {type(T).__name__}; expected 'cross_entropy' with "
            "rivals that answer with the probabilities of "
            "classes, and with them alone. Use another loss."
        )
    if training.loss == "lesson" and (
        T.config["init"] != "descent" or not T.config["F"] or T.config["shared"]
    ):
        raise TransduceError(
            f"loss='lesson' with init={T.config['init']!r}, F={T.config['F']} and "
            f"shared={T.config['shared']}; expected a model with "
            "init='descent', whose F, and not G, learns what its kernels are to regress on. Use "
            "another loss."
        )
    count = 64 if training.standardise else 1
    tasks = [
        family.sample_task(
            training.n[1], training.queries, generator_for("train", training.seed, i)
        )
        for i in range(count)
    ]
    x = tasks[0].examples.x
    for space, name in ((T.V, "v"), (T.U, "u")):
        space.check(
            to_tensor(getattr(tasks[0].examples, name), name),
            None if x is None else to_tensor(x, "x"),
            f"the family's {name}",
        )
    if training.standardise and isinstance(T, Transducer) and bool((T.spread == 1).all()):
        batch = stack(tasks)
        _, of_v = (
            space.measure(batch[name].to(T.spread).flatten(0, 1))
            for space, name in ((T.U, "u"), (T.V, "v"))
        )
        if not of_v:
            T.standardise(T.V.encode(batch["v"].to(T.spread), batch.get("x")))


def described(family: OperatorFamily) -> str:
    """A family as its own repr tells it, or else its class: what a checkpoint remembers of its
    data."""
    return type(family).__name__ if type(family).__repr__ is object.__repr__ else repr(family)


def since_then(model: type[nn.Module]) -> dict[str, Any]:
    """The defaults of all options: those of the ones that a checkpoint was written before."""
    signatures = (inspect.signature(of).parameters.values() for of in (Training, model))
    known = {
        option.name: option.default
        for options in signatures
        for option in options
        if option.default is not option.empty
    }
    return json.loads(json.dumps(known))


class Averaged:
    """The exponential average of the weights; the weights themselves when the decay is 0."""

    def __init__(self, T: Learner, decay: float):
        self.decay = decay
        self.model: Learner | None = None
        if decay:
            self.model = deepcopy(T)
            self.model.requires_grad_(False)

    @torch.no_grad()
    def update(self, T: Learner) -> None:
        if self.model is not None:
            torch._foreach_lerp_(
                list(self.model.parameters()), list(T.parameters()), 1 - self.decay
            )

    def best(self, T: Learner) -> Learner:
        return T if self.model is None else self.model

    @torch.no_grad()
    def copy_to(self, T: Learner) -> None:
        if self.model is not None:
            T.load_state_dict(self.model.state_dict())


class Run:
    """Everything that a step changes, and its checkpoint."""

    def __init__(self, T: Learner, training: Training, data: str, processes: int):
        self.T, self.training, self.data, self.processes = T, training, data, processes
        self.step = 0
        self.optimisers: list[Any] = make_optimisers(
            T, training.lr, training.muon_lr, training.kernel_rate
        )
        self.rates = [group["lr"] for group in self._groups()]
        self.averaged = Averaged(T, training.average)

    def _groups(self) -> list[dict[str, Any]]:
        """The groups of parameters that have a rate of their own."""
        return [group for optimiser in self.optimisers for group in optimiser.param_groups]

    def set_up(self, fabric: Any) -> Any:
        """The loss, ready for the processes of `fabric`."""
        T: Any = self.T
        others = {"lesson": Lesson, "cross_entropy": Surprise}
        descends_on = (
            others[self.training.loss](T)
            if self.training.loss in others
            else Episode(T, self.training.left_out)
        )
        model, *self.optimisers = fabric.setup(descends_on, *self.optimisers)
        return model

    def advance(self, fabric: Any, model: Any, batch: dict[str, Tensor]) -> float:
        """One step of descent; returns the loss before it."""
        for optimiser in self.optimisers:
            optimiser.zero_grad()
        for group, rate in zip(self._groups(), self.rates, strict=True):
            group["lr"] = rate * self.training.factor(self.step)
        u = (
            batch["u_query"]
            if not self.training.left_out
            else torch.cat([batch["u_query"], batch["u"]], 1)
        )
        loss = self.loss(fabric, model(**batch), u)
        fabric.backward(loss)
        norm = nn.utils.clip_grad_norm_(self.T.parameters(), self.training.clip)
        if not torch.isfinite(norm):
            raise TransduceError(
                f"the gradient at step {self.step} is {norm.item()} (loss {loss.item()}, batch "
                "seed "
                f"{seed_for('train', self.training.seed, self.step)}); expected finite. The last "
                "good checkpoint is kept. Lower lr and "
                "muon_lr, or look for bad values in the data."
            )
        for optimiser in self.optimisers:
            optimiser.step()
        self.averaged.update(self.T)
        self.step += 1
        return loss.item()

    def loss(self, fabric: Any, errors: Float[Tensor, "b m"], u: Tensor) -> Tensor:
        """The loss of a step from the relative squared errors of its answers for u, or from those
        of a lesson."""
        if self.training.loss in ("relative_mse", "cross_entropy", "lesson"):
            return errors.mean()
        if self.training.loss == "squared":
            return (errors * u.flatten(2).square().sum(-1)).mean()
        if self.training.loss == "relative_l2":
            return errors.add(1e-8).sqrt().mean()
        loss = errors.add(1e-12).sqrt().mean()
        overall = fabric.all_reduce(
            loss.detach()
        )  # the mean over all processes, inside the logarithm
        return loss / overall + overall.log() - 1

    def identity(self) -> dict[str, Any]:
        """What must agree for a checkpoint to be of this run."""
        may_change = ("steps", "validate_every", "checkpoint_every", "validation_tasks")
        settings = {
            key: value for key, value in asdict(self.training).items() if key not in may_change
        }
        return json.loads(
            json.dumps(
                {**self.T.config, **settings, "data": self.data, "processes": self.processes}
            )
        )

    def save(self, path: Path) -> None:
        """Write a complete checkpoint, atomically."""
        state = {
            "format": "transduce checkpoint",
            "identity": self.identity(),
            "step": self.step,
            "model": self.T.state_dict(),
            "averaged": None if self.averaged.model is None else self.averaged.model.state_dict(),
            "optimisers": [optimiser.state_dict() for optimiser in self.optimisers],
            "random": torch.get_rng_state(),
        }
        with replacing(path) as temporary:
            torch.save(state, temporary)

    def restore(self, path: Path) -> None:
        """Go on from a checkpoint."""
        remedy = "Move it away to start anew, or give another folder."
        state = read_checkpoint(path, remedy)
        theirs, ours = (
            since_then(type(self.T)) | identity for identity in (state["identity"], self.identity())
        )
        if ours != theirs:
            other = ", ".join(
                f"{key} {theirs.get(key)} there and {ours.get(key)} here"
                for key in ours | theirs
                if theirs.get(key) != ours.get(key)
            )
            raise TransduceError(f"{path} belongs to another run ({other}). {remedy}")
        if state["step"] > self.training.steps:
            raise TransduceError(
                f"{path} has taken {state['step']} steps already; {self.training.steps} were "
                f"asked for. Ask for more. {remedy}"
            )
        self.T.load_state_dict(state["model"])
        if self.averaged.model is not None:
            self.averaged.model.load_state_dict(state["averaged"])
        for optimiser, kept in zip(self.optimisers, state["optimisers"], strict=True):
            optimiser.load_state_dict(kept)
        torch.set_rng_state(state["random"])
        self.step = int(state["step"])


def read_checkpoint(path: Path, remedy: str) -> dict[str, Any]:
    """The content of a checkpoint whose every byte is as it was written; nothing in it is
    executed."""
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
        state = None if damaged else torch.load(path, weights_only=True, map_location="cpu")
    except Exception as error:
        raise TransduceError(
            f"{path} is not a checkpoint, or is damaged ({type(error).__name__}). {remedy}"
        ) from None
    if (
        not isinstance(state, dict)
        or state.get("format") != "transduce checkpoint"
        or "identity" not in state
    ):
        raise TransduceError(
            f"{path} is not a checkpoint that transduce wrote, or is damaged. {remedy}"
        )
    return state


def make_fabric() -> Any:
    """Lightning Fabric for the processes that torchrun started, or for this one."""
    try:
        from lightning_fabric import Fabric
    except ImportError:
        raise TransduceError(
            "meta-training runs on Lightning Fabric, which is not installed. Install it: pip "
            "install -c constraints.txt -e '.[train]'"
        ) from None
    world, local = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    fabric = Fabric(
        devices=local, num_nodes=world // local, strategy="ddp" if world > 1 else "auto"
    )
    fabric.launch()
    return fabric


def validation_tasks(family: OperatorFamily, training: Training) -> list[dict[str, Tensor]]:
    """Draws that training never makes, at n = 50 or the nearest trained n, with 50 queries or as
    many as a task of the family can give."""
    n = min(max(50, training.n[0]), training.n[1])
    m = min(50, getattr(family, "pairs", n + 50) - n)
    if m < 1:
        raise TransduceError(
            f"{described(family)} has tasks of {n + m} pairs; expected more than the {n} "
            "examples, to validate on."
        )
    draws = (
        family.sample_task(n, m, generator_for("validation", training.seed, i))
        for i in range(training.validation_tasks)
    )
    return [stack([task]) for task in draws]


@torch.no_grad()
def validate(T: Learner, tasks: list[dict[str, Tensor]]) -> float:
    """The mean relative squared error over the validation tasks."""
    errors = (
        Episode(T)(**{key: value.to(T.spread) for key, value in task.items()}).mean().item()
        for task in tasks
    )
    return sum(errors) / len(tasks)
