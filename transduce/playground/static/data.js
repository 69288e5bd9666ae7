// The tab of one's own data: files in, answers out, nothing kept but here.
import { ask, base64, blob, newest, rows, unpack } from "./api.js";
import { paint } from "./field.js";
import { Plot } from "./plot.js";
import { message, milliseconds } from "./say.js";

// Whether positions ascend or descend, so that a band between them is no tangle.
const ordered = (x) => !x || [1, -1].some((sign) => x.every((value, i) => !i || sign * (value - x[i - 1]) > 0));
const $ = (id) => document.getElementById(id);

export function start() {
  let files = [], answer = null, curves = null, taken = 0;
  const plot = new Plot($("answer"), () => draw(), { height: 1 }), drop = $("drop"), said = $("data-message");

  const regress = newest(async () => {
    if (!files.length) return;
    message(said, "Reading …");
    try {
      const uploads = await Promise.all(files.map(async (file) => ({ name: file.name, content: base64(new Uint8Array(await file.arrayBuffer())) })));
      take(await ask("data/regress", { files: uploads, model: $("model").value || null }));
    } catch (error) {
      take(null);
      message(said, error.message, true);
    }
  });

  function take(found) {
    answer = found;
    taken += 1;
    const lines = found?.shape.length === 2;
    curves = lines ? { u: rows(found.u), low: found.low && rows(found.low), high: found.high && rows(found.high), examples: rows(found.examples), x: found.x && unpack(found.x) } : null;
    offer("npz", found && blob(found.npz, "application/zip"));
    offer("csv", found?.csv && new Blob([found.csv], { type: "text/csv" }));
    const shown = found ? found.u.shape[0] : 0;
    Object.assign($("query"), { max: Math.max(1, shown), value: 1, disabled: shown < 2 });
    $("query-value").value = found ? `1 of ${found.shape[0]}` : "–";
    $("data-about").textContent = found ? `${found.model}, n = ${found.n}, ${milliseconds(found.milliseconds)}` : "\u00a0";
    if (curves) plot.height = 1.1 * Math.max(1e-6, ...curves.u.concat(curves.low ?? [], curves.high ?? [], curves.examples).map((row) => row.reduce((most, value) => Math.max(most, Math.abs(value)), 0)));
    if (found) {
      $("model").replaceChildren(new Option("the first that fits", ""), ...found.fits.map((name) => new Option(name, name, false, name === $("model").value)));
      message(said, [`${found.shape[0]} answer${found.shape[0] > 1 ? "s" : ""} of shape ${found.shape.slice(1).join(" × ")} by ${found.model}, from ${found.n} pairs.`, ...found.report, ...found.warnings].join(" "));
    }
    draw();
  }

  function offer(kind, content) {
    const link = $(`save-${kind}`);
    if (link.href) URL.revokeObjectURL(link.href);
    link.ariaDisabled = String(!content);
    if (content) Object.assign(link, { href: URL.createObjectURL(content), download: `u.${kind}` });
    else link.removeAttribute("href");
  }

  function draw() {
    const at = Number($("query").value) - 1;
    if (answer && !curves) return field(at);
    const places = curves?.x ?? undefined;
    plot.frame(taken, () => {
      for (const u of curves?.examples ?? []) plot.line(u, "example", { alpha: 0.35, places });
    }, () => {
      if (!curves) return;
      if (curves.low && ordered(places)) plot.band(curves.low[at], curves.high[at], "prediction", places);
      plot.line(curves.u[at], "prediction", { width: 2.25, places });
    });
  }

  // Fields of two components: as those of the tab of fields, in the middle of the frame.
  function field(at) {
    const { canvas, front: pen } = plot, [, channels, side, other] = answer.u.shape;
    pen.resetTransform();
    pen.clearRect(0, 0, canvas.width, canvas.height);
    if (channels !== 2 || side !== other) return;
    const all = unpack(answer.u), size = 2 * side * side, one = all.subarray(at * size, (at + 1) * size);
    const square = new OffscreenCanvas(canvas.height, canvas.height);
    paint(square, one, side, one.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-6));
    pen.drawImage(square, (canvas.width - canvas.height) / 2, 0);
  }

  const receive = (list) => { files = [...list]; $("model").value = ""; regress(); };
  for (const kind of ["dragenter", "dragover"]) drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
  for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.remove("over"); });
  drop.addEventListener("drop", (event) => receive(event.dataTransfer.files));
  $("file").addEventListener("change", (event) => receive(event.target.files));
  $("model").addEventListener("change", () => regress());
  $("query").addEventListener("input", (event) => { $("query-value").value = `${event.target.value} of ${answer.shape[0]}`; draw(); });
}
