"""The training loop: learn to regress by regressing (equation 7).

    J(theta) = E_tasks [ mean_j |T_theta(D_train)(v_j) - O(v_j)| / |O(v_j)| ]

Each step draws n, then tasks of n examples and m queries from the family, and descends on the loss
of the queries. A run that is killed and started again from its last checkpoint ends with the same
bits as one that was not."""

from __future__ import annotations

from pathlib import Path

import torch

from ..progress import Journal
from ..random_fields import generator_for
from ..types import OperatorFamily, TransduceError, to_tensor
from .checkpoints import Checkpoint
from .learner import Batch, Learner, Processes, Standardises, fitted
from .options import Training
from .run import Run, make_fabric
from .tasks import draw, moved, stack
from .validation import described, validate, validation_tasks

MEASURED_ON = 64  # tasks that the spread of the inputs is measured on


def metatrain(
    T: Learner,
    family: OperatorFamily,
    training: Training,
    *,
    validation: OperatorFamily | None = None,
    out: str | Path | None = None,
    fabric: Processes | None = None,
    until: float = 0.0,
    checkpointing: bool = False,
) -> float | None:
    """Meta-train T in place.

    Args:
        T: a Transducer, or any other `Learner`.
        family: the operators to learn from.
        training: how.
        validation: the family of the validation tasks, drawn with seeds that training never uses;
            give `family` itself if it draws new operators. Default: no validation.
        out: a folder for checkpoint, log and TensorBoard events. Started again with the same
            folder, the run resumes from its last checkpoint, even with more `steps`.
        fabric: a Lightning Fabric with settings of your own.
        until: stop as soon as the validation error is this small.
        checkpointing: use gradient checkpointing: less memory, more time, the same gradient.

    Returns:
        The validation error, which is the mean relative squared error at n = 50 or the nearest
        trained n; None without validation.
    """
    fabric = fabric or make_fabric()
    T.to(fabric.device)
    T.train()
    use_checkpointing(T, checkpointing)
    prepare(T, family, training)
    run = Run(T, training, fabric)
    folder = None if out is None else Path(out)
    checkpoint = None if folder is None else resume(run, folder, described(family))
    tasks = [] if validation is None else validation_tasks(validation, training)
    run.set_up()
    journal = Journal(
        folder,
        training.steps,
        run.step,
        quiet=fabric.global_rank > 0,
        tasks=training.tasks * fabric.world_size,
    )
    error = descend(run, family, tasks, journal, checkpoint, until)
    run.averaged.copy_to(T)
    T.eval()
    return validate(T, tasks, training.loss) if tasks and error is None else error


def resume(run: Run, folder: Path, data: str) -> Checkpoint:
    """The checkpoint of a run in `folder`. If it exists already, the run is restored from it."""
    path = folder / "checkpoint.pt"
    checkpoint = Checkpoint(path, run.T, run.training, data, run.fabric.world_size)
    if checkpoint.exists():
        run.restore(checkpoint.read())
    return checkpoint


def descend(
    run: Run,
    family: OperatorFamily,
    tasks: list[Batch],
    journal: Journal,
    checkpoint: Checkpoint | None,
    until: float,
) -> float | None:
    """Take all steps that are left, or stop at a validation error of `until`.

    Returns:
        The last validation error; None if there was no step to validate at.
    """
    training, fabric, error = run.training, run.fabric, None
    with journal:
        while run.step < training.steps:
            batches = draw(family, training, run.step, fabric.global_rank)
            loss = run.advance([moved(batch, run.T.spread) for batch in batches])
            at_end = run.step == training.steps
            measured = bool(tasks) and (run.step % training.validate_every == 0 or at_end)
            error = validate(run.averaged.best(run.T), tasks, training.loss) if measured else error
            journal.step(
                run.step,
                loss=loss,
                lr=training.lr * training.factor(run.step - 1),
                error=error,
                measured=measured,
            )
            reached = fabric.broadcast(measured and error is not None and error <= until)
            due = run.step % training.checkpoint_every == 0 or at_end or reached
            if checkpoint is not None and fabric.is_global_zero and due:
                checkpoint.write(run.state())
            if reached:
                break
    return error


def use_checkpointing(T: Learner, checkpointing: bool) -> None:
    """Turn gradient checkpointing on or off; raises a TransduceError if T does not have it."""
    if hasattr(T, "checkpointing"):
        T.checkpointing = checkpointing
    elif checkpointing:
        raise TransduceError(
            f"checkpointing=True with a {type(T).__name__}; expected a Transducer. Leave it out."
        )


@torch.no_grad()
def prepare(T: Learner, family: OperatorFamily, training: Training) -> None:
    """Check that loss, model and family fit, and measure the spread of the inputs if needed."""
    training.objective.check(T)
    if training.left_out and not T.leaves_out:
        raise TransduceError(
            "left_out=True with a model without leave-one-out residuals; expected kernels that "
            "solve for their coefficients, in layers without G, such as those of "
            "models.representer and models.spectral. Give left_out=False."
        )
    tasks = [
        family.sample_task(
            training.n[1], training.queries, generator_for("train", training.seed, i)
        )
        for i in range(MEASURED_ON if training.standardise else 1)
    ]
    examples = tasks[0].examples
    x = None if examples.x is None else to_tensor(examples.x, "x")
    v, u = to_tensor(examples.v, "v"), to_tensor(examples.u, "u")
    own = fitted(T, v, u, x)
    own.V.check(v, x, "the family's v")
    own.U.check(u, x, "the family's u")
    if training.standardise and not getattr(T, "measured", False):
        shapes = {(task.examples.v.shape, task.examples.u.shape) for task in tasks}
        if len(shapes) > 1:
            raise TransduceError(
                f"standardise=True with tasks on grids of {len(shapes)} sizes; expected functions "
                "of one shape, whose units are measured together. Give standardise=False."
            )
        measure(T, stack(tasks))


def measure(T: Learner, batch: Batch) -> None:
    """Set the units of a model's inputs and outputs from the functions of a batch.

    A space with units of its own measures these. Else the model's `spread` is measured.
    """
    if not isinstance(T, Standardises):
        return
    v, u = (batch[name].to(T.spread) for name in ("v", "u"))
    T.U.measure(u.flatten(0, 1))
    if not T.V.measure(v.flatten(0, 1)):
        T.standardise(T.V.encode(v, batch.get("x")))
    T.measured = True
