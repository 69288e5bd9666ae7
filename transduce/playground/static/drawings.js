// The tab of drawings: classes are names with a few drawings each.
import { ask, newest, pack, rows } from "./api.js";
import { Pad, SIDE, centred, show } from "./pad.js";
import { announce, message, milliseconds } from "./say.js";

const $ = (id) => document.getElementById(id);
const MOST = 10, SHOWN = 8;

export function start() {
  let kept = [], likely = new Map();
  const said = $("drawings-message"), pad = new Pad($("pad"), changed);
  const names = () => [...new Set(kept.map((example) => example.name))].sort();

  function changed() {
    show($("seen"), pad.image());
    classify();
  }

  const classify = newest(async () => {
    const query = pad.image();
    if (!query || names().length < 2) {
      likely = new Map();
      draw();
      return message(said, names().length < 2 ? "Keep drawings of two kinds at least, then draw another." : `${kept.length} drawings of ${names().length} kinds. Draw one more.`);
    }
    const all = new Float32Array(kept.length * SIDE * SIDE);
    kept.forEach((example, i) => all.set(example.pixels, i * SIDE * SIDE));
    try {
      const found = await ask("images/classify", { names: kept.map((example) => example.name), images: pack(all, [kept.length, SIDE * SIDE]), query: pack(query, [1, SIDE * SIDE]) });
      likely = new Map(found.classes.map((name, i) => [name, found.p[i]]));
      draw();
      const best = found.classes[found.p.indexOf(Math.max(...found.p))];
      $("classes").dataset.answers = Number($("classes").dataset.answers ?? 0) + 1;
      message(said, `A ${best}, in ${milliseconds(found.milliseconds)}; ${kept.length} drawings were read in ${milliseconds(found.regression)}.`);
      announce(`It says ${best}`);
    } catch (error) { message(said, error.message, true); }
  });

  function element(tag, className, ...children) {
    const made = Object.assign(document.createElement(tag), { className });
    made.append(...children);
    return made;
  }

  // Rows stay as they are while a drawing changes: only bars and numbers move.
  let built = "";
  function draw() {
    const now = kept.map((example) => example.id).join();
    if (now !== built) {
      built = now;
      $("classes").replaceChildren(...names().map(row));
    }
    const most = Math.max(0, ...likely.values());
    for (const line of $("classes").children) {
      const p = likely.get(line.dataset.name);
      line.querySelector(".bar").style.width = `${100 * (p ?? 0)}%`;
      line.querySelector(".p").textContent = p === undefined ? "" : `${(100 * p).toFixed(p < 0.0995 ? 1 : 0)} %`;
      line.classList.toggle("best", p !== undefined && p === most);
    }
  }

  function row(name) {
    const track = element("span", "track", element("span", "bar"), ...kept.filter((example) => example.name === name).slice(-SHOWN).map(thumbnail));
    const line = element("div", "class", element("span", "name", name), track, element("span", "p"));
    line.role = "listitem";
    line.dataset.name = name;
    return line;
  }

  function thumbnail(example) {
    const canvas = Object.assign(document.createElement("canvas"), { width: SIDE, height: SIDE });
    show(canvas, example.pixels);
    const button = element("button", "thumb", canvas);
    Object.assign(button, { type: "button", title: "remove", ariaLabel: `remove this ${example.name}` });
    button.addEventListener("click", () => { kept = kept.filter((other) => other !== example); classify(); draw(); });
    return button;
  }

  let count = 0;
  const example = (name, pixels) => ({ name, pixels, id: count++ });

  function keep() {
    const name = $("name").value.trim(), pixels = pad.image();
    if (!name || !pixels) return message(said, name ? "Draw something first." : "Give it a name first.", true);
    if (!names().includes(name) && names().length >= MOST) return message(said, `It tells up to ${MOST} kinds apart. Start afresh, or take some away.`, true);
    kept.push(example(name, pixels));
    pad.set([]);
    draw();
  }

  $("keep").addEventListener("click", keep);
  $("name").addEventListener("keydown", (event) => { if (event.key === "Enter") keep(); });
  $("clear").addEventListener("click", () => pad.set([]));
  $("afresh").addEventListener("click", () => { kept = []; pad.set([]); });
  $("digits").addEventListener("click", digits);

  async function digits() {
    const found = await ask("images/digits"), old = Math.sqrt(found.images.shape[1]);
    const sharp = rows(found.images).map((pixels) => centred(enlarged(pixels, old, 4 * old), 4 * old));
    kept = sharp.map((pixels, i) => example(found.names[i], pixels));
    draw();
    classify();
  }

  digits();
}

// Between few pixels, a larger image: a bilinear one.
function enlarged(pixels, old, side) {
  return Float32Array.from({ length: side * side }, (_, at) => {
    const [x, y] = [at % side, Math.floor(at / side)].map((k) => Math.min(old - 1, Math.max(0, ((k + 0.5) * old) / side - 0.5)));
    const [i, j] = [Math.floor(x), Math.floor(y)], [a, b] = [x - i, y - j], p = (r, c) => pixels[Math.min(r, old - 1) * old + Math.min(c, old - 1)];
    return (1 - b) * ((1 - a) * p(j, i) + a * p(j, i + 1)) + b * ((1 - a) * p(j + 1, i) + a * p(j + 1, i + 1));
  });
}
