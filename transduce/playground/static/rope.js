// The initial state: a soft curve that passes through the pointer.
//
//     v(x) <- v(x) + (y - v(p)) g(x) / g(p),      g(x) = exp(-(x - p)^2 / (2 l^2)) m(x),      m(x) = 1 - (2x - 1)^10
//
// l is that of the examples, 0.2 / sqrt(2): what is pulled so bends as softly as they do, and vanishes at both ends.

export const POINTS = 101, HANDLES = 9, MOST = 3;
const SOFTNESS = 0.2 / Math.SQRT2, EDGE = 0.03;

const mask = (x) => 1 - (2 * x - 1) ** 10;

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
    this.held = true;
    this.shown = false;
    this.follow(event);
  }

  // A stroke between two moves of the pointer is followed in small steps.
  follow(event) {
    const { t, value } = this.plot.at(event), from = event.type === "pointerdown" ? { t, value } : this.last;
    const steps = Math.max(1, Math.ceil(Math.abs(t - from.t) / 0.02));
    for (let i = 1; i <= steps; i++) this.pull(from.t + ((t - from.t) * i) / steps, from.value + ((value - from.value) * i) / steps);
    this.last = { t, value };
    this.changed(true);
  }

  pull(t, value) {
    const place = Math.round(Math.min(1 - EDGE, Math.max(EDGE, t)) * (POINTS - 1)), p = place / (POINTS - 1);
    const wanted = Math.max(-MOST, Math.min(MOST, value)) - this.v[place];
    for (let i = 0; i < POINTS; i++) {
      const x = i / (POINTS - 1);
      this.v[i] += (wanted * Math.exp(-((x - p) ** 2) / (2 * SOFTNESS ** 2)) * mask(x)) / mask(p);
    }
  }

  at(handle) { return (handle + 1) / (HANDLES + 1); }
  height(handle) { return this.v[Math.round(this.at(handle) * (POINTS - 1))]; }

  key(event) {
    const [across, up] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1], PageUp: [0, 0.5], PageDown: [0, -0.5] }[event.key] ?? [];
    if (across === undefined) return;
    event.preventDefault();
    this.shown = true;
    this.chosen = Math.min(HANDLES - 1, Math.max(0, this.chosen + across));
    if (up) this.pull(this.at(this.chosen), this.height(this.chosen) + up);
    const { canvas } = this.plot, value = this.height(this.chosen).toFixed(2);
    canvas.setAttribute("aria-valuenow", value);
    canvas.setAttribute("aria-valuetext", `point ${this.chosen + 1} of ${HANDLES}: ${value}`);
    this.changed(Boolean(up));
  }

  draw() {
    this.plot.line(this.v, "ink", { width: 2.5 });
    for (let i = 0; i < HANDLES; i++) this.plot.dot(this.at(i), this.height(i), this.shown && i === this.chosen ? "focus" : "ink", this.shown && i === this.chosen ? 7 : 4);
  }
}
