// The initial state: a soft curve that passes where the pointer has been.
//
//     v = v_0 + K (K_s + s^2 I)^-1 (y - v_0(x_s)),      K(x, x') = m(x) m(x') exp(-(x - x')^2 / (2 l^2)),      m(x) = 1 - (2x - 1)^10
//
// v_0 is the curve before the stroke, (x_s, y) the stroke. With the l of the examples, this is the likeliest of the functions that they
// are drawn from: it bends as softly as they do, and vanishes at both ends.

export const POINTS = 101, HANDLES = 9, MOST = 3;
const SOFTNESS = 0.2, SLACK = 0.002, KNOT = 0.04;

const mask = (x) => 1 - (2 * x - 1) ** 10;
const covariance = (x, y) => mask(x) * mask(y) * Math.exp(-((x - y) ** 2) / (2 * SOFTNESS ** 2));

// A^-1 b of a symmetric, positive A, by elimination.
function solve(A, b) {
  const n = b.length, x = Float64Array.from(b), rows = A.map((row) => Float64Array.from(row));
  for (let i = 0; i < n; i++) {
    for (let j = i + 1; j < n; j++) {
      const share = rows[j][i] / rows[i][i];
      for (let k = i; k < n; k++) rows[j][k] -= share * rows[i][k];
      x[j] -= share * x[i];
    }
  }
  for (let i = n - 1; i >= 0; i--) {
    for (let k = i + 1; k < n; k++) x[i] -= rows[i][k] * x[k];
    x[i] /= rows[i][i];
  }
  return x;
}

// The curve v bent through points [t, value].
function bent(v, points) {
  const weights = solve(
    points.map(([t], i) => points.map(([other], j) => covariance(t, other) + (i === j ? SLACK : 0))),
    points.map(([t, value]) => value - v[Math.round(t * (POINTS - 1))]),
  );
  return v.map((value, i) => points.reduce((sum, [t], j) => sum + weights[j] * covariance(i / (POINTS - 1), t), value));
}

export class Rope {
  chosen = 4;
  shown = false;

  constructor(plot, changed) {
    this.plot = plot;
    this.changed = changed;
    this.v = new Float32Array(POINTS);
    const { canvas } = plot;
    canvas.addEventListener("pointerdown", (event) => this.grab(event));
    canvas.addEventListener("pointermove", (event) => this.held && this.follow(event));
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { this.held = false; });
    canvas.addEventListener("keydown", (event) => this.key(event));
    for (const turn of ["focus", "blur"]) canvas.addEventListener(turn, () => { this.shown = turn === "focus" && canvas.matches(":focus-visible"); this.changed(false); });
  }

  grab(event) {
    this.plot.canvas.setPointerCapture(event.pointerId);
    Object.assign(this, { held: true, shown: false, before: this.v, stroke: new Map(), last: this.plot.at(event) });
    this.follow(event);
  }

  // A stroke is known by its height at knots, the latest at each.
  follow(event) {
    const to = this.plot.at(event), from = this.last, knot = (t) => Math.min(1 / KNOT - 1, Math.max(1, Math.round(t / KNOT)));
    const [first, last] = [knot(from.t), knot(to.t)], way = Math.sign(last - first);
    for (let k = first; k !== last; k += way) this.stroke.set(k, from.value + ((to.value - from.value) * (k - first)) / (last - first));
    this.stroke.set(last, to.value);
    this.last = to;
    this.bend(this.before, [...this.stroke].map(([k, value]) => [k * KNOT, value]));
  }

  bend(v, points) {
    this.v = bent(v, points.map(([t, value]) => [t, Math.max(-MOST, Math.min(MOST, value))]));
    this.changed(true);
  }

  // The curve through these points and none other.
  shape(points) { this.bend(new Float32Array(POINTS), points); }

  at(handle) { return (handle + 1) / (HANDLES + 1); }
  height(handle) { return this.v[Math.round(this.at(handle) * (POINTS - 1))]; }

  key(event) {
    const [across, up] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1], PageUp: [0, 0.5], PageDown: [0, -0.5] }[event.key] ?? [];
    if (across === undefined) return;
    event.preventDefault();
    this.shown = true;
    this.chosen = Math.min(HANDLES - 1, Math.max(0, this.chosen + across));
    if (up) this.bend(this.v, [[this.at(this.chosen), this.height(this.chosen) + up]]);
    const { canvas } = this.plot, value = this.height(this.chosen).toFixed(2);
    canvas.setAttribute("aria-valuenow", value);
    canvas.setAttribute("aria-valuetext", `point ${this.chosen + 1} of ${HANDLES}: ${value}`);
    if (!up) this.changed(false);
  }

  draw() {
    this.plot.line(this.v, "ink", { width: 2.5 });
    for (let i = 0; i < HANDLES; i++) this.plot.dot(this.at(i), this.height(i), this.shown && i === this.chosen ? "focus" : "ink", this.shown && i === this.chosen ? 7 : 4);
  }
}
