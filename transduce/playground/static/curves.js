// The tab of curves: a hidden operator, its examples, and an initial state to drag.
import { Rate, ask, newest, rows, unpack } from "./api.js";
import { Cells } from "./cells.js";
import { Portrait } from "./portrait.js";
import { announce, message, milliseconds, percent, squared, tell } from "./say.js";

const $ = (id) => document.getElementById(id);
const LENGTHS = [0.05, 0.07, 0.1, 0.14, 0.2, 0.28, 0.4, 0.56, 0.8], POOL = 100, PAUSE = 120;
const SHAPES = { wave: [[0.25, 1.4], [0.7, -1.1]], hill: [[0.5, 1.8]], surprise: null };
const numbered = (n) => Array.from({ length: n }, (_, i) => i);

export function start() {
  const of = { hidden: { seed: 1, length_scale: 0.2, k: 0.2, t: 1 }, drawn: null, examples: numbered(30), strangers: [], flagged: [], chosen: null };
  let influence = [], live = false, pause;
  const stats = $("curves-stats"), rate = new Rate(), said = $("examples-message");
  const portrait = new Portrait(of, () => { live = true; predict(); });
  const cells = new Cells($("cells"), POOL, (i) => (of.examples.includes(i) ? choose(i === of.chosen ? null : i) : give([...of.examples, i])), remove);

  const given = () => ({ hidden: of.hidden, examples: of.examples, strangers: of.strangers.filter((i) => of.examples.includes(i)) });
  const asked = () => ({ ...given(), v: Array.from(portrait.rope.v), chosen: of.chosen });
  const free = () => numbered(POOL).filter((i) => !of.examples.includes(i));

  const predict = newest(async () => {
    try {
      const { u_hat, low, high, truth, ...numbers } = await ask("adr/predict", asked());
      portrait.answer = { u_hat: unpack(u_hat), low: unpack(low), high: unpack(high), truth: truth && unpack(truth) };
      portrait.draw();
      show(numbers);
      clearTimeout(pause);
      pause = setTimeout(measure, PAUSE);
    } catch (error) { message(said, error.message, true); }
  });

  function show({ error, squared: e, inside, milliseconds: took, regression }) {
    const known = error !== undefined;
    tell(stats, {
      error: known ? percent(error) : "–", squared: known ? `relative; squared ${squared(e)}` : "no truth: it blows up, or is zero",
      milliseconds: milliseconds(took), regression: `regressed from ${of.examples.length} in ${milliseconds(regression)}`,
      inside: known ? percent(inside) : "–", rate: live ? rate.tick() : null,
    });
    stats.dataset.answers = Number(stats.dataset.answers ?? 0) + 1;
    stats.dataset.first ??= performance.now();
    announce(known ? `Error ${percent(error)}, ${milliseconds(took)}` : "No truth to compare with");
  }

  // What examples have to do with the answer, once the pointer rests.
  const measure = newest(async () => {
    const mine = JSON.stringify(given()), found = await ask("adr/influence", asked());
    if (mine !== JSON.stringify(given())) return;
    influence = found.influence;
    portrait.without = found.without && unpack(found.without);
    refresh();
  });

  function refresh() {
    cells.show({ ...of, influence });
    portrait.refresh();
  }

  function give(examples) {
    of.examples = examples;
    if (!examples.includes(of.chosen)) of.chosen = null;
    of.flagged = of.flagged.filter((i) => examples.includes(i));
    influence = [];
    portrait.without = null;
    $("n").value = $("n-value").value = examples.length;
    $("add").disabled = examples.length === POOL;
    $("remove").disabled = examples.length === 1;
    refresh();
    predict();
  }

  function choose(i) {
    of.chosen = i;
    portrait.without = null;
    refresh();
    measure();
    if (i === null) return message(said, "");
    const order = influence.map(Math.abs).sort((a, b) => b - a), mine = influence[of.examples.indexOf(i)] ?? 0;
    message(said, `Example ${i + 1} is number ${order.indexOf(Math.abs(mine)) + 1} of ${of.examples.length} by influence on this answer: `
      + `${mine < 0 ? "−" : "+"}${squared(Math.abs(mine))} to its energy. Dashed: the answer without it.`);
  }

  function remove(i) {
    if (of.examples.length > 1 && of.examples.includes(i)) give(of.examples.filter((j) => j !== i));
  }

  const load = newest(async () => {
    const place = $("operator-message"), { k, t } = of.hidden;
    try {
      const { v, u, foreign } = await ask("adr/examples", of.hidden);
      Object.assign(of, { drawn: { v: rows(v), u: rows(u), foreign: rows(foreign) }, strangers: [], flagged: [] });
      portrait.scale();
      give(of.examples);
      message(place, k * t > 0.3001 || t > 1
        ? "Beyond its training, which was k up to 0.3 at t = 1. Expect larger errors, and strangers that hide."
        : "It learned from length scale 0.2, k up to 0.3 and t = 1. Nobody tells it these.");
    } catch (error) { message(place, error.message, true); }
  });

  function spoil() {
    const honest = of.examples.filter((i) => !of.strangers.includes(i));
    if (!honest.length) return;
    of.strangers = [...of.strangers, honest[Math.floor(Math.random() * honest.length)]];
    of.flagged = [];
    give(of.examples);
    const count = of.strangers.length;
    message(said, `${count === 1 ? "One example now comes" : `${count} examples now come`} from another operator. Which? See the error, and find it.`);
  }

  async function find() {
    const mine = JSON.stringify(given());
    message(said, "Regressing 200 times from half of the examples …");
    try {
      const found = await ask("adr/outliers", given());
      if (mine !== JSON.stringify(given())) return;
      of.flagged = found.flagged;
      of.chosen = of.flagged[0] ?? of.chosen;
      refresh();
      measure();
      const which = of.flagged.map((i) => i + 1), many = which.length > 1;
      message(said, `${which.length ? `Example${many ? "s" : ""} ${which.join(", ")} ${many ? "do" : "does"} not belong. Remove takes out the chosen one` : "None stands out. With more examples, strangers do"}. `
        + `200 regressions in ${milliseconds(found.milliseconds)}.`);
    } catch (error) { message(said, error.message, true); }
  }

  const on = (id, event, act) => $(id).addEventListener(event, act);
  on("n", "input", ({ target }) => {
    const n = Number(target.value), { examples } = of;
    give(n < examples.length ? examples.slice(0, n) : [...examples, ...free().slice(0, n - examples.length)]);
  });
  on("add", "click", () => give([...of.examples, free()[0]]));
  on("remove", "click", () => remove(of.chosen ?? of.examples.at(-1)));
  on("spoil", "click", spoil);
  on("outliers", "click", find);
  for (const [id, name, value] of [["length", "length_scale", (x) => LENGTHS[x]], ["k", "k", Number], ["t", "t", Number]]) {
    on(id, "input", ({ target }) => {
      of.hidden = { ...of.hidden, [name]: value(target.value) };
      $(`${id}-value`).value = of.hidden[name];
      load();
    });
  }
  on("renew", "click", () => { of.hidden = { ...of.hidden, seed: of.hidden.seed + 1 }; load(); });
  on("after", "click", (event) => of.drawn && choose(portrait.nearest(event)));
  const random = () => numbered(5).map((i) => [(i + 1) / 6, 3 * Math.random() - 1.5]);
  for (const [name, pulls] of Object.entries(SHAPES)) on(`shape-${name}`, "click", () => portrait.rope.shape(pulls ?? random()));
  portrait.rope.shape(SHAPES.wave);
  live = false;
  load();
}
