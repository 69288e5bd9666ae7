// Tabs, which start when they are first opened, and the theme.
import { forgetColours } from "./plot.js";

const tabs = [...document.querySelectorAll('[role="tab"]')], started = new Set();

async function open(tab, focus = false) {
  for (const other of tabs) {
    const selected = other === tab;
    other.setAttribute("aria-selected", selected);
    other.tabIndex = selected ? 0 : -1;
    document.getElementById(other.getAttribute("aria-controls")).hidden = !selected;
  }
  if (focus) tab.focus();
  const name = tab.getAttribute("aria-controls");
  history.replaceState(null, "", `#/${name}`);
  if (started.has(name)) return;
  started.add(name);
  (await import(`./${name}.js`)).start();
}

for (const [i, tab] of tabs.entries()) {
  tab.addEventListener("click", () => open(tab));
  tab.addEventListener("keydown", (event) => {
    const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    open(tabs.at(to % tabs.length), true);
  });
}

const theme = document.getElementById("theme"), dark = matchMedia("(prefers-color-scheme: dark)");

function show(isDark) {
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
  theme.textContent = isDark ? "Light" : "Dark";
  theme.ariaLabel = `${theme.textContent} theme`;
  forgetColours();
  document.dispatchEvent(new Event("themechange"));
}

theme.addEventListener("click", () => show(document.documentElement.dataset.theme !== "dark"));
dark.addEventListener("change", () => show(dark.matches));
show(dark.matches);
for (const form of document.forms) form.addEventListener("submit", (event) => event.preventDefault());
open(tabs.find((tab) => location.hash === `#/${tab.getAttribute("aria-controls")}`) ?? tabs[0]);
