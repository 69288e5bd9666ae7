// Curves on a canvas, in the colours of the page.

const probe = document.createElement("span");
probe.hidden = true;
let known = {};

export function colour(name) {
  if (!probe.isConnected) document.body.append(probe);
  if (!known[name]) {
    probe.style.color = `var(--${name})`;
    known[name] = getComputedStyle(probe).color;
  }
  return known[name];
}

export function forgetColours() { known = {}; }

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

const LEFT = 30, BOTTOM = 20, TOP = 6, RIGHT = 8;

export class Plot {
  constructor(canvas, draw, height = 3.2) {
    this.canvas = canvas;
    this.height = height;
    this.pen = canvas.getContext("2d");
    fit(canvas, () => draw());
  }

  get inner() {
    return { w: this.canvas.clientWidth - LEFT - RIGHT, h: this.canvas.clientHeight - TOP - BOTTOM };
  }

  x(t) { return LEFT + t * this.inner.w; }
  y(value) { return TOP + (0.5 - value / (2 * this.height)) * this.inner.h; }

  // Where on the plot an event was.
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const t = (event.clientX - box.left - LEFT) / this.inner.w;
    return { t: Math.min(1, Math.max(0, t)), value: (0.5 - (event.clientY - box.top - TOP) / this.inner.h) * 2 * this.height };
  }

  start() {
    const { pen, canvas } = this, ratio = canvas.width / canvas.clientWidth;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    pen.font = `11px ${getComputedStyle(document.body).fontFamily}`;
    pen.lineWidth = 1;
    const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000, 1e4, 1e5, 1e6].find((s) => this.height / s <= 3.4) ?? this.height;
    for (let i = -Math.floor(this.height / step); i * step <= this.height; i++) {
      pen.strokeStyle = colour("line");
      pen.globalAlpha = i ? 0.6 : 1;
      this.path([0, 1], (t) => this.x(t), () => Math.round(this.y(i * step)) + 0.5);
      pen.globalAlpha = 1;
      pen.fillStyle = colour("soft");
      pen.textAlign = "right";
      pen.fillText(String(Number((i * step).toPrecision(3))).replace("-", "−"), LEFT - 7, this.y(i * step) + 4);
    }
    for (const t of [0, 0.5, 1]) {
      pen.textAlign = t === 0 ? "left" : t === 1 ? "right" : "center";
      pen.fillText(String(t), this.x(t), canvas.clientHeight - 4);
    }
    pen.save();
    pen.beginPath();
    pen.rect(LEFT - 1, 0, this.inner.w + 2 + RIGHT, canvas.clientHeight - BOTTOM + 4);
    pen.clip();
  }

  end() { this.pen.restore(); }

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

  band(low, high, name) {
    const { pen } = this, last = low.length - 1;
    pen.beginPath();
    low.forEach((value, i) => pen.lineTo(this.x(i / last), this.y(value)));
    for (let i = last; i >= 0; i--) pen.lineTo(this.x(i / last), this.y(high[i]));
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
