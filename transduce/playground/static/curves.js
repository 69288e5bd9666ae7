// The tab of curves: a hidden operator, its examples, and an initial state to drag.
import { Rate, ask, newest, rows, unpack } from "./api.js";
import { Cells } from "./cells.js";
import { Plot } from "./plot.js";
import { Rope } from "./rope.js";
import { announce, message, milliseconds, percent, squared, tell } from "./say.js";

const $ = (id) => document.getElementById(id);
const LENGTHS = [0.05, 0.07, 0.1, 0.14, 0.2, 0.28, 0.4, 0.56, 0.8], POOL = 100;

export function start() {
  let hidden = { seed: 1, length_scale: 0.2, k: 0.2, t: 1 };
  let examples = Array.from({ length: 30 }, (_, i) => i), strangers = [], flagged = [], influence = [], chosen = null;
  let drawn = null, answer = null, without = null;
  const stats = $("curves-stats"), rate = new Rate(), said = $("examples-message");
  const image = (i) => (strangers.includes(i) ? drawn.foreign[i] : drawn.u[i]);

  const before = new Plot($("before"), draw), after = new Plot($("after"), draw);
  const rope = new Rope(before, (moved) => { draw(); if (moved) predict(); });
  const cells = new Cells($("cells"), POOL, (i) => (examples.includes(i) ? choose(i === chosen ? null : i) : give([...examples, i])), remove);

  function draw() {
    for (const [plot, curve] of [[before, (i) => drawn.v[i]], [after, image]]) {
      plot.start();
      if (drawn) {
        for (const i of examples) plot.line(curve(i), "example", { alpha: 0.42 });
        for (const i of flagged) plot.line(curve(i), "outlier", { width: 2.5, dash: [2, 4] });
        if (examples.includes(chosen)) plot.line(curve(chosen), "chosen", { width: 2.5 });
      }
      if (plot === before) rope.draw();
      else if (answer) drawAnswer();
      plot.end();
    }
  }

  function drawAnswer() {
    after.band(answer.low, answer.high, "prediction");
    if (answer.truth) after.line(answer.truth, "truth", { width: 7, alpha: 0.4 });
    if (without && examples.includes(chosen)) after.line(without, "chosen", { width: 2, dash: [7, 5] });
    after.line(answer.u_hat, "prediction", { width: 2.25 });
  }

  const given = () => ({ hidden, examples, strangers: strangers.filter((i) => examples.includes(i)) });
  const asked = () => ({ ...given(), v: Array.from(rope.v), chosen });

  const predict = newest(async () => {
    try {
      const { u_hat, low, high, truth, ...numbers } = await ask("adr/predict", asked());
      answer = { u_hat: unpack(u_hat), low: unpack(low), high: unpack(high), truth: truth && unpack(truth) };
      draw();
      show(numbers);
      measure();
    } catch (error) { message(said, error.message, true); }
  });

  function show({ error, squared: e, inside, milliseconds: took, regression }) {
    const known = error !== undefined;
    tell(stats, {
      error: known ? percent(error) : "–", squared: known ? `relative; squared ${squared(e)}` : answer.truth ? "" : "no truth: it blows up, or is zero",
      milliseconds: milliseconds(took), regression: `regressed from ${examples.length} in ${milliseconds(regression)}`,
      inside: known ? percent(inside) : "–", rate: String(rate.tick()),
    });
    stats.dataset.answers = Number(stats.dataset.answers ?? 0) + 1;
    stats.dataset.first ??= performance.now();
    announce(known ? `Error ${percent(error)}, ${milliseconds(took)}` : "No truth to compare with");
  }

  const measure = newest(async () => {
    const mine = given();
    const found = await ask("adr/influence", asked());
    if (JSON.stringify(mine) !== JSON.stringify(given())) return;
    influence = found.influence;
    without = found.without && unpack(found.without);
    cells.show({ examples, influence, chosen, flagged });
    if (chosen !== null) draw();
  });

  function give(these, kept = true) {
    examples = these;
    if (!examples.includes(chosen)) chosen = null;
    if (!kept) [strangers, flagged] = [[], []];
    flagged = flagged.filter((i) => examples.includes(i));
    influence = [];
    without = null;
    $("n").value = $("n-value").value = examples.length;
    $("add").disabled = examples.length === POOL;
    $("remove").disabled = examples.length === 1;
    cells.show({ examples, influence, chosen, flagged });
    draw();
    predict();
  }

  function choose(i) {
    chosen = i;
    without = null;
    cells.show({ examples, influence, chosen, flagged });
    draw();
    measure();
    if (i === null) return message(said, "");
    const order = [...influence].map(Math.abs).sort((a, b) => b - a), mine = influence[examples.indexOf(i)] ?? 0;
    message(said, `Example ${i + 1} is ${order.indexOf(Math.abs(mine)) + 1} of ${examples.length} by influence on this answer: `
      + `${mine < 0 ? "−" : "+"}${squared(Math.abs(mine))} to its energy. Dashed: the answer without it.`);
  }

  function remove(i) {
    if (examples.length > 1 && examples.includes(i)) give(examples.filter((j) => j !== i));
  }

  const free = () => Array.from({ length: POOL }, (_, i) => i).filter((i) => !examples.includes(i));

  const load = newest(async () => {
    try {
      const { v, u, foreign } = await ask("adr/examples", hidden);
      drawn = { v: rows(v), u: rows(u), foreign: rows(foreign) };
      give(examples, false);
      beyond();
    } catch (error) { message($("operator-message"), error.message, true); }
  });

  function beyond() {
    const { k, t } = hidden, far = k * t > 0.3001 || t > 1;
    message($("operator-message"), far
      ? "Beyond its training: it learned k up to 0.3 at t = 1. Expect larger errors, and strangers that hide."
      : "It learned from length scale 0.2, k up to 0.3 and t = 1. Nobody tells it these.");
  }

  $("n").addEventListener("input", (event) => {
    const n = Number(event.target.value);
    give(n < examples.length ? examples.slice(0, n) : [...examples, ...free().slice(0, n - examples.length)]);
  });
  $("add").addEventListener("click", () => give([...examples, free()[0]]));
  $("remove").addEventListener("click", () => remove(chosen ?? examples.at(-1)));
  $("spoil").addEventListener("click", () => {
    const honest = examples.filter((i) => !strangers.includes(i));
    if (!honest.length) return;
    strangers = [...strangers, honest[Math.floor(Math.random() * honest.length)]];
    flagged = [];
    give(examples);
    message(said, `${strangers.length === 1 ? "One example now comes" : `${strangers.length} examples now come`} from another operator. Which? See the error, and find it.`);
  });
  $("outliers").addEventListener("click", async () => {
    const mine = JSON.stringify(given());
    message(said, "Regressing 200 times from half of the examples …");
    try {
      const found = await ask("adr/outliers", given());
      if (mine !== JSON.stringify(given())) return;
      flagged = found.flagged;
      chosen = flagged[0] ?? chosen;
      cells.show({ examples, influence, chosen, flagged });
      draw();
      measure();
      const which = flagged.map((i) => i + 1).join(", ");
      message(said, `${flagged.length ? `Example${flagged.length > 1 ? "s" : ""} ${which} ${flagged.length > 1 ? "do" : "does"} not belong: Remove takes it out` : "None stands out. With more examples, strangers do"}. `
        + `200 regressions in ${milliseconds(found.milliseconds)}.`);
    } catch (error) { message(said, error.message, true); }
  });

  for (const [id, name, value] of [["length", "length_scale", (x) => LENGTHS[x]], ["k", "k", Number], ["t", "t", Number]]) {
    $(id).addEventListener("input", (event) => {
      hidden = { ...hidden, [name]: value(event.target.value) };
      $(`${id}-value`).value = hidden[name];
      load();
    });
  }
  $("renew").addEventListener("click", () => { hidden = { ...hidden, seed: hidden.seed + 1 }; load(); });
  $("after").addEventListener("click", (event) => {
    if (!drawn) return;
    const { t, value } = after.at(event), place = Math.round(t * 100), away = (i) => Math.abs(image(i)[place] - value);
    const nearest = examples.reduce((best, i) => (away(i) < away(best) ? i : best));
    choose(away(nearest) < 0.08 * after.height ? nearest : null);
  });

  rope.pull(0.25, 1.4);
  rope.pull(0.7, -1.1);
  load();
  predict();
}
