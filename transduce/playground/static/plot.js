// Curves on a canvas, in the colours of the page.

const probe = document.createElement("span");
probe.hidden = true;
let known = {}, themes = 0;

export function colour(name) {
  if (!probe.isConnected) document.body.append(probe);
  if (!known[name]) {
    probe.style.color = `var(--${name})`;
    known[name] = getComputedStyle(probe).color;
  }
  return known[name];
}

export function forgetColours() {
  known = {};
  themes += 1;
}

// `draw`, once for each picture that the screen shows however often it is asked for.
export function soon(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; draw(); });
  };
}

// Gives the canvas as many pixels as the screen has, and draws whenever that changes.
export function fit(canvas, draw) {
  new ResizeObserver(() => {
    const ratio = Math.min(devicePixelRatio || 1, 3), { clientWidth, clientHeight } = canvas;
    if (!clientWidth) return;
    canvas.width = Math.round(clientWidth * ratio);
    canvas.height = Math.round(clientHeight * ratio);
    draw();
  }).observe(canvas);
  document.addEventListener("themechange", draw);
}

const LEFT = 38, BOTTOM = 20, TOP = 6, RIGHT = 8;
const STEPS = Array.from({ length: 42 }, (_, i) => [1, 2, 5][i % 3] * 10 ** (Math.floor(i / 3) - 7));

// The least round number that is not below `value`.
export const roundUp = (value) => STEPS.find((step) => step >= value) ?? value;

// Functions on [0, 1], with values from -height to height. low: as low as a strip, without numbers along x.
export class Plot {
  constructor(canvas, draw, { height = 3.2, low = false } = {}) {
    Object.assign(this, { canvas, height, low, bottom: low ? 4 : BOTTOM });
    this.front = canvas.getContext("2d");
    this.back = new OffscreenCanvas(1, 1).getContext("2d");
    fit(canvas, () => draw());
  }

  get inner() {
    return { w: this.canvas.clientWidth - LEFT - RIGHT, h: this.canvas.clientHeight - TOP - this.bottom };
  }

  x(t) { return LEFT + t * this.inner.w; }
  y(value) { return TOP + (0.5 - value / (2 * this.height)) * this.inner.h; }

  // Where on the plot an event was.
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const t = (event.clientX - box.left - LEFT) / this.inner.w;
    return { t: Math.min(1, Math.max(0, t)), value: (0.5 - (event.clientY - box.top - TOP) / this.inner.h) * 2 * this.height };
  }

  // Draws `top` over `ground`, which is drawn anew only if `version`, the scale, the size or the theme has changed.
  frame(version, ground, top) {
    const { canvas, front, back } = this, key = [version, this.height, canvas.width, canvas.height, themes].join();
    if (!canvas.width) return;
    if (key !== this.key) {
      Object.assign(back.canvas, { width: canvas.width, height: canvas.height });
      this.key = key;
      this.within(back, () => { this.axes(); ground(); });
    }
    front.resetTransform();
    front.clearRect(0, 0, canvas.width, canvas.height);
    front.drawImage(back.canvas, 0, 0);
    this.within(front, top);
  }

  within(pen, draw) {
    const { canvas } = this, ratio = canvas.width / canvas.clientWidth;
    this.pen = pen;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.save();
    draw();
    pen.restore();
  }

  axes() {
    const { pen, canvas } = this;
    pen.font = `11px ${getComputedStyle(document.body).fontFamily}`;
    pen.lineWidth = 1;
    const step = roundUp(this.height / (this.low ? 1.9 : 3.6));
    for (let i = -Math.floor(this.height / step); i * step <= this.height; i++) {
      pen.strokeStyle = colour("line");
      pen.globalAlpha = i ? 0.6 : 1;
      this.path([0, 1], (t) => this.x(t), () => Math.round(this.y(i * step)) + 0.5);
      pen.globalAlpha = 1;
      pen.fillStyle = colour("soft");
      pen.textAlign = "right";
      pen.fillText(String(Number((i * step).toPrecision(3))).replace("-", "−"), LEFT - 7, this.y(i * step) + 4);
    }
    for (const t of this.low ? [] : [0, 0.5, 1]) {
      pen.textAlign = t === 0 ? "left" : t === 1 ? "right" : "center";
      pen.fillText(String(t), this.x(t), canvas.clientHeight - 4);
    }
    pen.beginPath();
    pen.rect(LEFT - 1, 0, this.inner.w + 2 + RIGHT, canvas.clientHeight - this.bottom + 4);
    pen.clip();
  }

  path(values, x, y) {
    this.pen.beginPath();
    values.forEach((value, i) => (i ? this.pen.lineTo(x(value, i), y(value, i)) : this.pen.moveTo(x(value, i), y(value, i))));
    this.pen.stroke();
  }

  line(values, name, { width = 1, alpha = 1, dash = [], places } = {}) {
    const { pen } = this, last = values.length - 1;
    Object.assign(pen, { strokeStyle: colour(name), lineWidth: width, globalAlpha: alpha, lineJoin: "round", lineCap: dash.length ? "butt" : "round" });
    pen.setLineDash(dash);
    this.path(Array.from(values), (_, i) => this.x(places ? places[i] : i / last), (value) => this.y(value));
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  }

  band(low, high, name, places) {
    const { pen } = this, last = low.length - 1, at = (i) => this.x(places ? places[i] : i / last);
    pen.beginPath();
    low.forEach((value, i) => pen.lineTo(at(i), this.y(value)));
    for (let i = last; i >= 0; i--) pen.lineTo(at(i), this.y(high[i]));
    pen.fillStyle = colour(name);
    pen.globalAlpha = 0.22;
    pen.fill();
    pen.globalAlpha = 1;
  }

  dot(t, value, name, radius) {
    const { pen } = this;
    pen.beginPath();
    pen.arc(this.x(t), this.y(value), radius, 0, 2 * Math.PI);
    pen.fillStyle = colour("card");
    pen.fill();
    pen.strokeStyle = colour(name);
    pen.lineWidth = 2;
    pen.stroke();
  }
}
