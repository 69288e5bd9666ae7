"""What experiments promise: each measurement made once, nothing lost when stopped, and what is
shown comes from the rows alone."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from paper_samples import TINY as SCALES
from typer.testing import CliRunner

from paper.adr.extrapolation import Bumps, NewQueries, Steps, sweeps
from paper.adr.resolution import TwoGrids
from paper.adr.setting import REGRESSORS, Scale, identities
from paper.adr.spectrum import MODES, coupling, jacobian
from paper.adr.trainings import SOFTMAX, trained, training, training_data
from paper.experiments import EXPERIMENTS, Part, reproduce
from paper.lab import QUICK_RUN, Lab, Ledger
from paper.measuring import Remembered, errors
from paper.timing import operations
from transduce import baselines
from transduce.cli import app
from transduce.evaluation import evaluate
from transduce.families import AdvectionDiffusionReaction
from transduce.metrics import relative_mse
from transduce.random_fields import SPLITS, generator_for
from transduce.report import markdown_table
from transduce.spaces import SineModes
from transduce.types import TransduceError

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "adr"
TINY = SCALES["adr"]


def test_a_measurement_is_made_once_and_outlives_its_process(tmp_path):
    calls = []

    def compute():
        calls.append(1)
        return [1.5, ("x",)]

    labs = [Lab(TINY, tmp_path, "part") for _ in range(2)]
    assert [lab.once(compute, n=5, operator=0) for lab in labs] == [[1.5, ["x"]]] * 2
    assert len(calls) == 1 and labs[0].seconds == labs[1].seconds > 0
    labs[1].once(compute, n=5, operator=1)
    assert len(calls) == 2


def test_a_line_cut_short_is_as_if_it_were_not_there_and_spoils_no_other(tmp_path):
    path = tmp_path / "a.jsonl"
    for n in (1, 2):
        Ledger(path).add({"n": n}, 10 * n, 0.5)
    path.write_bytes(path.read_bytes()[:-9])
    ledger = Ledger(path)
    assert {"n": 1} in ledger and {"n": 2} not in ledger
    ledger.add({"n": 2}, 30, 0.5)
    again = Ledger(path)
    assert again[{"n": 1}]["value"] == 10 and again[{"n": 2}]["value"] == 30


def counting_part(calls, fail=False):
    def measure(lab):
        rows = [
            {"n": n, "mean": lab.once(lambda n=n: calls.append(n) or n / 2, n=n)} for n in (1, 2, 3)
        ]
        if fail:
            raise KeyboardInterrupt
        return rows

    return Part("counted", "counting", measure, lambda rows: [{"n": row["n"]} for row in rows])


def test_a_run_that_was_stopped_goes_on_where_it_stood(tmp_path):
    calls: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        reproduce(
            "adr", [counting_part(calls, fail=True)], TINY, tmp_path / "out", tmp_path / "work", {}
        )
    reproduce("adr", [counting_part(calls)], TINY, tmp_path / "out", tmp_path / "work", {})
    assert calls == [1, 2, 3]
    result = json.loads((tmp_path / "out" / "counted.json").read_text())
    assert [row["mean"] for row in result["rows"]] == [0.5, 1, 1.5]
    assert {"command", "seed", "versions", "machine", "seconds", "settings"} <= result.keys()


def test_tables_of_a_quick_run_say_so_and_others_are_tables_alone(tmp_path):
    table = markdown_table([{"n": 1}, {"n": 2}, {"n": 3}])
    for quick, said in ((True, QUICK_RUN + table), (False, table)):
        for _ in range(2):  # measured, and shown anew
            reproduce(
                "adr",
                [counting_part([])],
                replace(TINY, quick=quick),
                tmp_path / str(quick),
                tmp_path / "work",
                {},
            )
            assert (tmp_path / str(quick) / "counted.md").read_text() == said
    assert QUICK_RUN.startswith("*A quick run")


@pytest.mark.parametrize(
    ("scale", "regressors", "said"),
    [(replace(TINY, queries=4), {"adr": "a"}, "queries"), (TINY, {"adr": "b"}, "regressors")],
)
def test_results_of_other_settings_are_not_replaced_unasked(tmp_path, scale, regressors, said):
    calls: list[int] = []
    reproduce("adr", [counting_part(calls)], TINY, tmp_path, tmp_path / "work", {"adr": "a"})
    before = (tmp_path / "counted.json").read_bytes()
    with pytest.raises(TransduceError, match=rf"\({said}\).*--force"):
        reproduce("adr", [counting_part(calls)], scale, tmp_path, tmp_path / "work", regressors)
    assert (tmp_path / "counted.json").read_bytes() == before
    reproduce(
        "adr", [counting_part(calls)], scale, tmp_path, tmp_path / "work", regressors, force=True
    )
    assert (
        json.loads((tmp_path / "counted.json").read_text())["settings"]
        != json.loads(before)["settings"]
    )


def test_settings_are_checked_before_anything_is_measured(tmp_path):
    calls: list[int] = []
    (tmp_path / "counted.json").write_text('{"settings": {}, "rows": []}')
    first = replace(counting_part(calls), name="first")
    with pytest.raises(TransduceError, match="other settings"):
        reproduce("adr", [first, counting_part(calls)], TINY, tmp_path, tmp_path / "work", {})
    assert calls == []


def test_a_measurement_holds_for_one_regressor_one_seed_and_one_number_of_queries(tmp_path):
    family, seen = AdvectionDiffusionReaction(), set()
    for scale in (TINY, replace(TINY, queries=4), replace(TINY, seed=1)):
        for R in (baselines.baseline("mean"), baselines.baseline("identity")):
            (row,) = errors(Lab(scale, tmp_path, "part"), "one name", R, repr(R), family, (3,), 1)
            seen.add(row["mean"])
    assert len(seen) == 6


def test_equal_trainings_are_made_once_and_others_apart(tmp_path):
    lab, data = Lab(TINY, tmp_path), training_data(Lab(TINY, tmp_path))
    model = SOFTMAX | {"depth": 1, "heads": 1, "width": 4, "hidden": 4}
    first, again = (trained(lab, model, training(lab), data) for _ in range(2))
    others = [
        trained(lab, model | {"width": 5}, training(lab), data),
        trained(lab, model, training(lab, lr=1e-4), data),
        trained(lab, model, training(lab), data.first(2)),
        trained(replace(lab, scale=replace(TINY, seed=1)), model, training(lab), data),
    ]
    assert first.identity == again.identity and first.curve == again.curve
    assert (
        len({found.identity for found in (first, *others)})
        == 5
        == len(list((tmp_path / "trainings").iterdir()))
    )


def test_every_regressor_says_what_it_is():
    """An identity holds no address in memory and no class: it is the same in every process."""
    assert list(identities()) == list(REGRESSORS)
    said = [json.dumps(identity) for identity in identities().values()]
    assert not any(" at 0x" in one or "(" in one for one in said)
    assert len(set(said)) == len(REGRESSORS)


def test_errors_are_those_of_evaluation(tmp_path):
    family, R = AdvectionDiffusionReaction(), baselines.baseline("linear-ridge")
    lab = Lab(TINY, tmp_path, "part")
    (row,) = errors(lab, "linear-ridge", R, repr(R), family, (6,), 2)
    direct = [
        r["relative_mse"]
        for i in range(2)
        for r in evaluate(R, family, 6, 1, generator_for("test", 0, i), TINY.queries)
    ]
    assert np.isclose(row["mean"], np.mean(direct), rtol=1e-5) and row["operators"] == 2


def test_remembered_tasks_are_nested():
    family = Remembered(AdvectionDiffusionReaction(), 9)
    few, many = (family.sample_task(n, 4, generator_for("test", 7)) for n in (3, 9))
    assert torch.equal(few.examples.v, many.examples.v[:3]) and torch.equal(
        few.queries.u, many.queries.u
    )


def test_tests_and_trainings_never_meet(tmp_path):
    """Training data comes from the train split, errors from the test split: their seeds differ in
    their highest bits."""
    seeds = {generator_for("test", Scale().seed, i).initial_seed() >> 30 for i in range(100)}
    assert seeds == {SPLITS["test"]}
    data = training_data(Lab(TINY, tmp_path))
    test = torch.cat(
        [
            AdvectionDiffusionReaction().sample_task(150, 1, generator_for("test", 0, i)).examples.v
            for i in range(4)
        ]
    )
    assert not (data.v.flatten(0, 1)[:, None, 50] == test[None, :, 50]).any()


def test_new_queries_share_their_examples_operator():
    task = NewQueries(AdvectionDiffusionReaction(v_length_scale=0.3)).sample_task(
        4, 3, generator_for("test", 1)
    )
    O = AdvectionDiffusionReaction().sample_operator(generator_for("test", 1))
    for pairs in (task.examples, task.queries):
        assert relative_mse(O(pairs.v), pairs.u) < 1e-4


@pytest.mark.parametrize("states", [Bumps(), Steps()])
def test_new_states_vanish_at_the_ends(states):
    v = states.sample_inputs(50, generator_for("test", 0))
    assert v[:, [0, -1]].abs().max() < 1e-12 and 0.3 < v.abs().amax(1).mean() < 3


def test_sweeps_hold_the_trained_value_once_each():
    trained = [sweep for sweep, _, family in sweeps() if family == AdvectionDiffusionReaction()]
    assert sorted(trained) == sorted({sweep for sweep, _, _ in sweeps()})


def test_two_grids_show_the_same_functions():
    coarse, fine = (
        TwoGrids(*grids).sample_task(3, 2, generator_for("test", 5))
        for grids in ((51, 101), (101, 201))
    )
    assert torch.allclose(coarse.examples.u, fine.examples.u[:, ::2], atol=1e-6)
    assert torch.allclose(coarse.queries.u, fine.queries.u[:, ::2], atol=1e-6)


def test_jacobian_of_a_diagonal_operator_is_its_gain():
    gains = 1 / torch.arange(1, 100, dtype=torch.float64)
    space = SineModes(99)
    J = jacobian(
        lambda v: space.decode(space.encode(v) * gains, v.shape[-1]),
        torch.zeros(101, dtype=torch.float64),
    )
    assert np.allclose(J, np.diag(gains[:MODES].numpy()), atol=1e-10)
    assert coupling(J) < 1e-12 < coupling(J + 0.1)


def test_operations_are_counted():
    a, b = torch.ones(8, 16), torch.ones(16, 4)
    assert operations(lambda: a @ b) == 2 * 8 * 16 * 4
    assert operations(lambda: a.to(torch.complex64) @ b.to(torch.complex64)) == 8 * 8 * 16 * 4
    assert operations(lambda: torch.linalg.cholesky_ex(torch.eye(12))) == 12**3 // 3
    assert operations(lambda: a.numpy() @ b.numpy()) is None
    assert (
        operations(
            lambda: torch.linalg.solve_triangular(torch.eye(12), torch.ones(12, 5), upper=False)
        )
        == 12 * 12 * 5
    )
    q, k = torch.ones(1, 2, 8, 16), torch.ones(1, 2, 32, 16)
    assert operations(
        lambda: torch.nn.functional.scaled_dot_product_attention(q, k, k)
    ) == 2 * 2 * 8 * 32 * (16 + 16)
    there, back = (
        operations(lambda f=f: f())
        for f in (
            lambda: torch.fft.rfft(torch.ones(64)),
            lambda: torch.fft.irfft(torch.ones(33), n=64),
        )
    )
    assert there == back == 2.5 * 64 * 6
    w = torch.ones(16, 4, requires_grad=True)
    assert operations(lambda: (a @ w).sum().backward()) == 2 * 2 * 8 * 16 * 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["adrr"], "no experiment"), (["adr", "--only", "sizes,nothing"], "no part called 'nothing'")],
)
def test_the_command_refuses_what_it_does_not_know(arguments, said):
    result = CliRunner().invoke(app, ["reproduce", *arguments])
    assert result.exit_code == 2 and said in result.stderr


def test_the_command_reproduces(tmp_path, monkeypatch):
    monkeypatch.setattr(EXPERIMENTS["adr"], "QUICK", TINY)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["reproduce", "adr", "--quick", "--only", "samples"])
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "results" / "adr-quick" / "coefficients.png").exists()


@pytest.mark.results
@pytest.mark.parametrize("name", ["fno", "deeponet"])
def test_tuned_rivals_are_the_best_of_what_was_tried(name):
    from validation.rival_tuning import CHOICES, changed

    rows = json.loads((RESULTS / "rivals.json").read_text())["rows"]
    tried = {row["choice"]: row["mean"] for row in rows if row["rival"] == name and row["n"] == 50}
    assert tried.keys() == CHOICES[name].keys()
    assert changed(name, CHOICES[name][min(tried, key=tried.get)]) == baselines.baseline(name)


def test_a_training_curve_goes_on_over_its_stages(tmp_path):
    """Also where a clock was started anew, and where a validation is told again with later
    steps."""
    from validation.training_curve import stages

    logs = {
        "a": [(100, None, 5.0), (200, 0.5, 9.0), (300, 0.5, 2.0), (400, 0.25, 4.0)],
        "b": [(100, 0.2, 3.0)],
    }
    for name, lines in logs.items():
        (tmp_path / name).mkdir()
        text = "\n".join(
            json.dumps({"step": step, "validation": error, "seconds": seconds})
            for step, error, seconds in lines
        )
        (tmp_path / name / "log.jsonl").write_text(text)
    rows = stages([tmp_path / "a", tmp_path / "b"])
    assert [(row["stage"], row["step"], row["seconds"], row["error"]) for row in rows] == [
        (1, 200, 9.0, 0.5), (1, 400, 13.0, 0.25), (2, 500, 16.0, 0.2),
    ]  # fmt: skip
