// The tab of fields: a fluid of hidden viscosity, and a field to stir.
import { Rate, ask, newest, pack, unpack } from "./api.js";
import { Field, SIDE, paint, scale } from "./field.js";
import { announce, message, milliseconds, percent, squared, tell } from "./say.js";

const $ = (id) => document.getElementById(id);
const REACH = 5.6, MOST = 3.2;  // of a push, in cells: as wide as the fields are smooth; and the fastest there may be, in amplitudes

export function start() {
  let fluid = { seed: 1, amplitude: 0.2, t: 5 }, n = 10, query = 0, v = null, shown = false, viscosity = 0, held = null, live = false;
  const stats = $("flow-stats"), rate = new Rate(), said = $("flow-message");
  const [before, predicted, truth] = ["before", "predicted", "true"].map((id) => new Field($(`flow-${id}`)));
  const speed = () => MOST * fluid.amplitude;

  const predict = newest(async () => {
    const mine = v;
    try {
      const answer = await ask("burgers/predict", { fluid, n, query, v: v && pack(v, [2, SIDE, SIDE]) });
      if (answer.v && v === mine) v = unpack(answer.v);
      if (v) before.show(v, SIDE, speed());
      predicted.show(unpack(answer.u_hat), SIDE, speed());
      truth.show(unpack(answer.truth), SIDE, speed());
      viscosity = answer.viscosity;
      tell(stats, {
        error: percent(answer.error), squared: `relative; squared ${squared(answer.squared)}`, milliseconds: milliseconds(answer.milliseconds),
        regression: `regressed from ${n} in ${milliseconds(answer.regression)}`, rate: live ? rate.tick() : null,
      });
      reveal();
      stats.dataset.answers = Number(stats.dataset.answers ?? 0) + 1;
      announce(`Error ${percent(answer.error)}, ${milliseconds(answer.milliseconds)}`);
      message(said, "It learned from viscosities of 0.1 to 0.5, strengths up to 0.35 and times up to 10 s.");
    } catch (error) { message(said, error.message, true); }
  });

  const pairs = newest(async () => {
    const { v: inputs, u } = await ask("burgers/examples", { fluid, n });
    const [, , side] = inputs.shape, size = 2 * side * side, [a, b] = [unpack(inputs), unpack(u)], count = Math.min(n, inputs.shape[0]);
    const gap = Math.round(0.16 * side), small = new OffscreenCanvas(2 * side, 2 * side);
    thumbnails.forEach((canvas, i) => {
      const pen = Object.assign(canvas, { width: 4 * side + gap, height: 2 * side }).getContext("2d");
      for (const [k, all] of [a, b].entries()) {
        if (i >= count) continue;
        paint(small, all.subarray(i * size, (i + 1) * size), side, speed(), false);
        pen.drawImage(small, k * (2 * side + gap), 0);
      }
    });
  });

  function reveal() {
    tell(stats, { viscosity: shown ? viscosity.toPrecision(3) : "hidden" });
    $("flow-reveal").textContent = shown ? "hide it" : "reveal it";
  }

  // A push moves what lies within its reach, the field being periodic.
  function push(x, y, dx, dy) {
    const [strength, most] = [0.09 * fluid.amplitude, speed()], next = Float32Array.from(v);
    const near = (a, b) => { const d = Math.abs(a - b) % SIDE; return Math.min(d, SIDE - d); };
    for (let i = 0; i < SIDE; i++) {
      for (let j = 0; j < SIDE; j++) {
        const weight = strength * Math.exp(-(near(i, x) ** 2 + near(j, y) ** 2) / (2 * REACH ** 2)), at = i * SIDE + j;
        let [s1, s2] = [next[at] + weight * dx, next[SIDE * SIDE + at] + weight * dy];
        const much = Math.max(1, Math.hypot(s1, s2) / most);
        next[at] = s1 / much;
        next[SIDE * SIDE + at] = s2 / much;
      }
    }
    v = next;
    live = true;
    before.show(v, SIDE, speed());
    predict();
  }

  const canvas = $("flow-before");
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * SIDE, (1 - (event.clientY - box.top) / box.height) * SIDE];
  };
  canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); held = place(event); });
  canvas.addEventListener("pointermove", (event) => {
    if (!held || !v) return;
    const [x, y] = place(event), [dx, dy] = [x - held[0], y - held[1]];
    held = [x, y];
    push(x, y, dx, dy);
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { held = null; });
  canvas.addEventListener("keydown", (event) => {
    const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!way || !v) return;
    event.preventDefault();
    push(SIDE / 2, SIDE / 2, 4 * way[0], 4 * way[1]);
  });

  function anew(part) {
    fluid = { ...fluid, ...part };
    document.querySelector('[data-flow="t"]').textContent = `${fluid.t} s later`;
    predict();
    pairs();
  }

  for (const [id, act] of [["t", (t) => anew({ t })], ["n", (count) => { n = count; anew({}); }], ["amplitude", (amplitude) => { v = null; anew({ amplitude }); }]]) {
    $(`flow-${id}`).addEventListener("input", (event) => {
      $(`flow-${id}-value`).value = event.target.value;
      act(Number(event.target.value));
    });
  }
  $("flow-field").addEventListener("click", () => { query += 1; v = null; predict(); });
  $("flow-renew").addEventListener("click", () => { v = null; shown = false; anew({ seed: fluid.seed + 1 }); });
  $("flow-reveal").addEventListener("click", () => { shown = !shown; reveal(); });
  const thumbnails = Array.from({ length: 9 }, () => document.createElement("canvas"));
  $("flow-pairs").replaceChildren(...thumbnails);
  scale($("flow-scale"));
  anew({});
}
