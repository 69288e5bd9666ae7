// Numbers and messages as the page shows them.

export const percent = (x) => (x >= 1e-6 ? `${Number((100 * x).toPrecision(2))} %` : "0 %");
export const milliseconds = (x) => `${x < 10 ? x.toFixed(1) : Math.round(x)} ms`;
export const squared = (x) => {
  const [mantissa, exponent] = x.toExponential(1).split("e");
  return x >= 0.1 ? x.toPrecision(2) : `${mantissa}e${Number(exponent)}`;
};

// Fills the places of a list of numbers that are named in `values`; null leaves what is there.
export function tell(stats, values) {
  for (const [name, value] of Object.entries(values)) {
    const place = stats.querySelector(`[data-stat="${name}"]`);
    if (value !== null && place.textContent !== value) place.textContent = value;
  }
}

export function message(place, text, wrong = false) {
  place.textContent = text;
  place.classList.toggle("wrong", wrong);
}

// For those who listen: after a drag, not during it.
let timer;
export function announce(text) {
  clearTimeout(timer);
  timer = setTimeout(() => { document.getElementById("said").textContent = text; }, 700);
}
