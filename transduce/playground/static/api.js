// The server: questions, arrays both ways, and one question at a time.

export async function ask(path, body = {}) {
  const response = await fetch(`/api/${path}`, {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.detail);
  return answer;
}

function binary(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

// An array as the server writes it: its numbers, with their shape.
export function unpack(packed) {
  return Object.assign(new Float32Array(binary(packed.data).buffer), { shape: packed.shape });
}

// The rows of an array of two axes.
export function rows(packed) {
  const all = unpack(packed), [n, width] = all.shape;
  return Array.from({ length: n }, (_, i) => all.subarray(i * width, (i + 1) * width));
}

export function base64(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text);
}

export function pack(numbers, shape) {
  return { shape, data: base64(new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength)) };
}

export const blob = (text, type) => new Blob([binary(text)], { type });

// Runs `work` for the newest argument only, one at a time: what came in between is never asked.
export function newest(work) {
  let waiting, running = false;
  return async function run(argument) {
    waiting = { argument };
    if (running) return;
    running = true;
    try {
      while (waiting) {
        const next = waiting.argument;
        waiting = undefined;
        await work(next);
      }
    } finally { running = false; }
  };
}

// Answers a second of a drag, once there are enough of them to tell; a pause begins another.
export class Rate {
  times = [];
  tick() {
    const now = performance.now();
    if (now - this.times.at(-1) > 300) this.times = [];
    this.times = [...this.times.filter((time) => time > now - 1000), now];
    return this.times.length < 4 ? null : String(Math.round((1000 * (this.times.length - 1)) / (now - this.times[0])));
  }
}
