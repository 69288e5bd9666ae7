// A cell for each example of the pool: filled if it is given, as high as its influence. A click gives it, or chooses it.

export class Cells {
  constructor(place, count, clicked, deleted) {
    this.all = Array.from({ length: count }, (_, i) => {
      const cell = Object.assign(document.createElement("button"), { type: "button", className: "cell", tabIndex: i ? -1 : 0 });
      cell.append(document.createElement("i"));
      cell.addEventListener("click", () => clicked(i));
      return cell;
    });
    place.replaceChildren(...this.all);
    place.addEventListener("keydown", (event) => {
      const here = this.all.indexOf(event.target);
      if (event.key === "Delete" || event.key === "Backspace") deleted(here);
      const columns = getComputedStyle(place).gridTemplateColumns.split(" ").length;
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
      if (!step || !this.all[here + step]) return;
      event.preventDefault();
      this.all[here].tabIndex = -1;
      this.all[here + step].tabIndex = 0;
      this.all[here + step].focus();
    });
  }

  show({ examples, influence, chosen, flagged }) {
    const most = Math.max(1e-30, ...influence.map(Math.abs));
    const of = new Map(examples.map((example, i) => [example, influence[i]]));
    this.all.forEach((cell, i) => {
      const given = of.has(i), share = (of.get(i) ?? 0) / most;
      cell.setAttribute("aria-pressed", given);
      cell.setAttribute("aria-label", `example ${i + 1}${given ? "" : ", not given"}${flagged.includes(i) ? ", an outlier" : ""}${share ? `, influence ${Math.round(100 * share)} % of the greatest` : ""}`);
      cell.classList.toggle("chosen", i === chosen);
      cell.classList.toggle("outlier", flagged.includes(i));
      cell.classList.toggle("negative", share < 0);
      cell.firstChild.style.transform = `scaleY(${Math.abs(share)})`;
    });
  }
}
