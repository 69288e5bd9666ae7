// The picture of an operator: examples, the initial state, the prediction over the truth, and what is left between the two.
import { Plot, roundUp, soon } from "./plot.js";
import { Rope } from "./rope.js";

const $ = (id) => document.getElementById(id);

export class Portrait {
  answer = null;
  without = null;
  version = 0;

  // of: what is to be shown: { drawn, examples, strangers, chosen, flagged }.
  constructor(of, moved) {
    this.of = of;
    this.draw = soon(() => this.paint());
    this.before = new Plot($("before"), this.draw);
    this.after = new Plot($("after"), this.draw);
    this.strip = new Plot($("strip"), this.draw, { low: true, height: 0.1 });
    this.rope = new Rope(this.before, (changed) => { this.draw(); if (changed) moved(); });
  }

  // Examples have changed, not only the answer.
  refresh() {
    this.version += 1;
    this.draw();
  }

  image(i) { return (this.of.strangers.includes(i) ? this.of.drawn.foreign : this.of.drawn.u)[i]; }

  scale() {
    const tops = this.of.drawn.u.map((u) => Math.max(...u.map(Math.abs))).sort((a, b) => a - b);
    this.after.height = Math.min(5.2, Math.max(2.2, 1.1 * tops[94]));
  }

  paint() {
    this.before.frame(this.version, () => this.examples(this.before, (i) => this.of.drawn.v[i]), () => this.rope.draw());
    this.after.frame(this.version, () => this.examples(this.after, (i) => this.image(i)), () => this.answered());
    this.left();
  }

  examples(plot, curve) {
    const { drawn, examples, flagged, chosen } = this.of;
    if (!drawn) return;
    for (const i of examples) plot.line(curve(i), "example", { alpha: 0.42 });
    for (const i of flagged) plot.line(curve(i), "outlier", { width: 8, dash: [2.5, 4] });
    if (examples.includes(chosen)) plot.line(curve(chosen), "chosen", { width: 2.5 });
  }

  answered() {
    if (!this.answer) return;
    const { after, without, answer: { u_hat, low, high, truth } } = this;
    after.band(low, high, "prediction");
    if (truth) after.line(truth, "truth", { width: 7, alpha: 0.4 });
    if (without && this.of.examples.includes(this.of.chosen)) after.line(without, "chosen", { width: 2, dash: [7, 5] });
    after.line(u_hat, "prediction", { width: 2.25 });
  }

  // Prediction minus truth, and the band about it, on a scale of their own.
  left() {
    const { strip, answer } = this;
    if (!answer?.truth) return strip.frame(0, () => {}, () => {});
    const [miss, low, high] = [answer.u_hat, answer.low, answer.high].map((curve) => curve.map((value, i) => value - answer.truth[i]));
    strip.height = roundUp(1.02 * Math.max(...[miss, low, high].map((curve) => Math.max(...curve.map(Math.abs)))));
    strip.frame(0, () => {}, () => {
      strip.band(low, high, "prediction");
      strip.line(new Float32Array(2), "truth", { width: 4, alpha: 0.4 });
      strip.line(miss, "prediction", { width: 1.75 });
    });
  }

  // The example whose image passes nearest to where an event was, if one is near.
  nearest(event) {
    const { t, value } = this.after.at(event), place = Math.round(100 * t), away = (i) => Math.abs(this.image(i)[place] - value);
    const best = this.of.examples.reduce((found, i) => (away(i) < away(found) ? i : found));
    return away(best) < 0.08 * this.after.height ? best : null;
  }
}
