// A vector field on a canvas: speed as colour (cividis, which is even to all eyes), and lines along the flow. The field is periodic.
import { fit } from "./plot.js";

export const SIDE = 64;
const CIVIDIS = "00224e002e6a1a386f32436d434e6c535a6d61656f6f70737d7c788c88789b9476aba072bcae6ccdbb63dec958f0d846fee838".match(/.{6}/g)
  .map((hex) => [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16)));
const LINES = 11, STEPS = 16, LENGTH = 22;  // lines a side, points of each, and cells of one at full speed

function heat(share) {
  const place = Math.min(0.9999, Math.max(0, share)) * (CIVIDIS.length - 1), i = Math.floor(place), rest = place - i;
  return CIVIDIS[i].map((from, c) => from + (CIVIDIS[i + 1][c] - from) * rest);
}

// A canvas that shows a field, whatever its size.
export class Field {
  constructor(canvas) {
    this.canvas = canvas;
    fit(canvas, () => this.draw());
  }

  show(values, side, most) {
    this.shown = [values, side, most];
    this.draw();
  }

  draw() { if (this.shown) paint(this.canvas, ...this.shown); }
}

// values: two components after each other, on a grid of side x side points, the first axis to the right, the second upwards.
export function paint(canvas, values, side, most, lines = true) {
  const small = new OffscreenCanvas(side, side), picture = new ImageData(side, side), pen = canvas.getContext("2d");
  for (let i = 0; i < side; i++) {
    for (let j = 0; j < side; j++) {
      const at = i * side + j, speed = Math.hypot(values[at], values[side * side + at]);
      picture.data.set([...heat(speed / most), 255], 4 * ((side - 1 - j) * side + i));
    }
  }
  small.getContext("2d").putImageData(picture, 0, 0);
  pen.imageSmoothingQuality = "high";
  pen.drawImage(small, 0, 0, canvas.width, canvas.height);
  if (lines) streams(canvas, (x, y) => between(values, side, x, y).map((s) => s / most), side);
}

// Both components between points.
function between(values, side, x, y) {
  const i = Math.floor(x), j = Math.floor(y), a = x - i, b = y - j, wrap = (k) => ((k % side) + side) % side;
  const [i0, i1, j0, j1] = [wrap(i) * side, wrap(i + 1) * side, wrap(j), wrap(j + 1)];
  return [0, side * side].map((c) => (1 - a) * ((1 - b) * values[c + i0 + j0] + b * values[c + i0 + j1])
    + a * ((1 - b) * values[c + i1 + j0] + b * values[c + i1 + j1]));
}

function streams(canvas, at, side) {
  const pen = canvas.getContext("2d"), unit = canvas.width / side, apart = side / LINES;
  Object.assign(pen, { lineWidth: Math.max(1, 0.0042 * canvas.width), strokeStyle: "rgb(255 255 255 / .8)", fillStyle: "rgb(255 255 255 / .92)", lineCap: "round" });
  for (let s = 0; s < LINES * LINES; s++) {
    const row = Math.floor(s / LINES);
    let x = ((s % LINES) + (row % 2 ? 0.75 : 0.25)) * apart, y = (row + 0.5) * apart, way = [0, 0];
    pen.beginPath();
    pen.moveTo(x * unit, (side - y) * unit);
    for (let step = 0; step < STEPS; step++) {
      way = at(x, y);
      x += (way[0] * LENGTH) / STEPS;
      y += (way[1] * LENGTH) / STEPS;
      pen.lineTo(x * unit, (side - y) * unit);
    }
    pen.stroke();
    const speed = Math.hypot(...way);
    if (speed > 0.12) head(pen, x * unit, (side - y) * unit, Math.atan2(-way[1], way[0]), canvas.width * (0.007 + 0.009 * Math.min(1, speed)));
  }
}

function head(pen, x, y, angle, size) {
  pen.beginPath();
  for (const turn of [0, 2.5, -2.5]) pen.lineTo(x + size * Math.cos(angle + turn), y + size * Math.sin(angle + turn));
  pen.fill();
}

export function scale(canvas) {
  const picture = new ImageData(canvas.width, 1);
  for (let i = 0; i < canvas.width; i++) picture.data.set([...heat(i / canvas.width), 255], 4 * i);
  canvas.getContext("2d").putImageData(picture, 0, 0);
}
