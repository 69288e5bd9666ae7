// A vector field on a canvas: speed as colour (cividis, which is even to all eyes), and lines along the flow. The field is periodic.
import { fit, soon } from "./plot.js";

export const SIDE = 64;
const CIVIDIS = "00224e002e6a1a386f32436d434e6c535a6d61656f6f70737d7c788c88789b9476aba072bcae6ccdbb63dec958f0d846fee838".match(/.{6}/g)
  .map((hex) => [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16)));
const LINES = 11, STEPS = 16, LENGTH = 22;  // lines a side, points of each, and cells of one at full speed

// 256 colours as the four bytes that a picture holds of each.
const COLOURS = new Uint32Array(256).map((_, k) => {
  const place = (k / 255) * (CIVIDIS.length - 1.001), i = Math.floor(place);
  const [r, g, b] = CIVIDIS[i].map((from, c) => Math.round(from + (CIVIDIS[i + 1][c] - from) * (place - i)));
  return new Uint32Array(Uint8Array.of(r, g, b, 255).buffer)[0];
});

// A canvas that shows a field, whatever its size.
export class Field {
  constructor(canvas) {
    this.canvas = canvas;
    this.draw = soon(() => this.shown && paint(canvas, ...this.shown));
    fit(canvas, this.draw);
  }

  show(values, side, most) {
    this.shown = [values, side, most];
    this.draw();
  }
}

// values: two components after each other, on a grid of side x side points, the first axis to the right, the second upwards.
export function paint(canvas, values, side, most, lines = true) {
  const small = new OffscreenCanvas(side, side), picture = new ImageData(side, side), pen = canvas.getContext("2d");
  const pixels = new Uint32Array(picture.data.buffer), half = side * side;
  for (let i = 0; i < side; i++) {
    for (let j = 0; j < side; j++) {
      const s1 = values[i * side + j], s2 = values[half + i * side + j];
      pixels[(side - 1 - j) * side + i] = COLOURS[Math.min(255, Math.floor((255 * Math.sqrt(s1 * s1 + s2 * s2)) / most))];
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
  const picture = new ImageData(canvas.width, 1), pixels = new Uint32Array(picture.data.buffer);
  for (let i = 0; i < canvas.width; i++) pixels[i] = COLOURS[Math.floor((256 * i) / canvas.width)];
  canvas.getContext("2d").putImageData(picture, 0, 0);
}
