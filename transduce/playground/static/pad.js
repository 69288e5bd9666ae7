// A pad to draw on, and its drawing as MNIST's were made: 20 pixels on its longer side, its centre of mass in the middle of 28 x 28.
import { fit } from "./plot.js";

export const SIDE = 28;
const READ = 112, BOX = 20, FAINT = 0.1, BRUSH = 0.075;  // READ: pixels a side from which 28 are made

// Digits as strokes in the unit square, for those who draw by key.
const STROKES = {
  0: [[[.5, .12], [.28, .25], [.24, .5], [.28, .75], [.5, .88], [.72, .75], [.76, .5], [.72, .25], [.5, .12]]],
  1: [[[.38, .28], [.54, .12], [.54, .88]]],
  2: [[[.28, .3], [.36, .16], [.54, .12], [.7, .22], [.7, .38], [.5, .6], [.28, .85], [.75, .85]]],
  3: [[[.3, .18], [.5, .12], [.68, .22], [.66, .4], [.48, .48], [.68, .56], [.72, .72], [.56, .88], [.3, .82]]],
  4: [[[.6, .88], [.6, .12], [.26, .62], [.78, .62]]],
  5: [[[.7, .14], [.36, .14], [.32, .46], [.54, .42], [.7, .56], [.68, .76], [.5, .88], [.3, .8]]],
  6: [[[.62, .12], [.4, .34], [.3, .62], [.38, .84], [.58, .86], [.7, .7], [.6, .54], [.4, .56], [.31, .66]]],
  7: [[[.26, .14], [.74, .14], [.56, .5], [.46, .88]]],
  8: [[[.5, .48], [.32, .36], [.36, .18], [.5, .12], [.64, .18], [.68, .36], [.5, .48], [.3, .64], [.34, .82], [.5, .88], [.66, .82], [.7, .64], [.5, .48]]],
  9: [[[.7, .36], [.58, .46], [.38, .44], [.3, .28], [.42, .13], [.62, .14], [.7, .3], [.68, .6], [.56, .88]]],
};

export class Pad {
  strokes = [];

  constructor(canvas, changed) {
    Object.assign(this, { canvas, changed });
    fit(canvas, () => this.draw());
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.strokes.push([this.at(event)]);
      this.held = true;
      this.draw(true);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.held) return;
      for (const part of event.getCoalescedEvents?.().length ? event.getCoalescedEvents() : [event]) this.strokes.at(-1).push(this.at(part));
      this.draw(true);
    });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { this.held = false; });
    canvas.addEventListener("keydown", (event) => {
      if (STROKES[event.key]) this.set(structuredClone(STROKES[event.key]));
    });
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  }

  set(strokes) {
    this.strokes = strokes;
    this.draw(true);
  }

  draw(changed = false) {
    ink(this.canvas.getContext("2d"), this.canvas.width, this.strokes);
    if (changed) this.changed();
  }

  // Pixels from 0 to 1, or null where nothing is drawn.
  image() {
    const pen = new OffscreenCanvas(READ, READ).getContext("2d", { willReadFrequently: true });
    ink(pen, READ, this.strokes);
    return centred(opacity(pen, READ), READ);
  }
}

function ink(pen, size, strokes) {
  pen.clearRect(0, 0, size, size);
  Object.assign(pen, { strokeStyle: "#fff", lineWidth: BRUSH * size, lineCap: "round", lineJoin: "round" });
  for (const stroke of strokes) {
    pen.beginPath();
    pen.moveTo(stroke[0][0] * size, stroke[0][1] * size);
    if (stroke.length === 1) pen.lineTo(stroke[0][0] * size, stroke[0][1] * size + 0.1);
    for (let i = 1; i < stroke.length; i++) {  // through the middles, so that corners are round
      const [a, b] = [stroke[i], stroke[Math.min(i + 1, stroke.length - 1)]];
      pen.quadraticCurveTo(a[0] * size, a[1] * size, ((a[0] + b[0]) / 2) * size, ((a[1] + b[1]) / 2) * size);
    }
    pen.stroke();
  }
}

function opacity(pen, side) {
  const { data } = pen.getImageData(0, 0, side, side);
  return Float32Array.from({ length: side * side }, (_, i) => data[4 * i + 3] / 255);
}

function white(pixels, side) {
  const picture = new ImageData(side, side);
  picture.data.fill(255);
  pixels.forEach((p, i) => { picture.data[4 * i + 3] = 255 * p; });
  return picture;
}

export function centred(pixels, side) {
  let [left, top, right, bottom] = [side, side, -1, -1];
  pixels.forEach((p, i) => {
    if (p <= FAINT) return;
    const x = i % side, y = Math.floor(i / side);
    [left, top, right, bottom] = [Math.min(left, x), Math.min(top, y), Math.max(right, x), Math.max(bottom, y)];
  });
  if (right < 0) return null;
  const scale = BOX / (1 + Math.max(right - left, bottom - top)), w = (right - left + 1) * scale, h = (bottom - top + 1) * scale;
  const whole = new OffscreenCanvas(side, side);
  whole.getContext("2d").putImageData(white(pixels, side), 0, 0);
  const shrunk = (x, y) => {
    const pen = new OffscreenCanvas(SIDE, SIDE).getContext("2d", { willReadFrequently: true });
    pen.imageSmoothingQuality = "high";
    pen.drawImage(whole, left, top, right - left + 1, bottom - top + 1, x, y, w, h);
    return opacity(pen, SIDE);
  };
  let [mass, x, y] = [0, 0, 0];
  shrunk((SIDE - w) / 2, (SIDE - h) / 2).forEach((p, i) => { mass += p; x += p * (i % SIDE); y += p * Math.floor(i / SIDE); });
  const middle = (SIDE - 1) / 2, within = (at, size) => Math.min(SIDE - size, Math.max(0, at));
  return shrunk(within((SIDE - w) / 2 + middle - x / mass, w), within((SIDE - h) / 2 + middle - y / mass, h));
}

// Pixels on a canvas of their own size.
export function show(canvas, pixels) {
  canvas.getContext("2d").putImageData(pixels ? white(pixels, SIDE) : new ImageData(SIDE, SIDE), 0, 0);
}
