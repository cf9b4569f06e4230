// What every page has: the theme button, and colours for canvases.

import "./live.js";
import { byId } from "./page-base.js";

const themes = ["system", "light", "dark"];
const glyphs = { system: "◐", light: "☀", dark: "☾" };
const onThemeChange = new Set();
const probe = document.createElement("i");

/** A colour of the style sheet in the present theme, as a canvas understands it. */
export function cssColour(name) {
  if (!probe.isConnected) {
    probe.hidden = true;
    document.body.append(probe);
  }
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

/** The same colour with another opacity, from 0 to 1. */
export function withOpacity(colour, opacity) {
  const [red, green, blue] = colour.match(/[\d.]+/g) ?? [0, 0, 0];
  return `rgba(${red}, ${green}, ${blue}, ${opacity})`;
}

/** Calls `redraw` whenever the theme changes: canvases do not follow the style sheet. */
export function watchTheme(redraw) {
  onThemeChange.add(redraw);
}

function currentTheme() {
  return document.documentElement.dataset.theme ?? "system";
}

function showTheme() {
  byId("theme").textContent = glyphs[currentTheme()];
  byId("theme").setAttribute("aria-label", `Theme: ${currentTheme()}`);
  byId("theme").title = `Theme: ${currentTheme()}`;
  for (const redraw of onThemeChange) redraw();
}

function chooseTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    if (theme === "system") localStorage.removeItem("theme");
    else localStorage.setItem("theme", theme);
  } catch {
    // Storage is blocked: the choice lasts as long as the page.
  }
  showTheme();
}

// A table that is wider than a phone must scroll with the keyboard too.
for (const box of document.querySelectorAll(".scroll")) {
  box.tabIndex = 0;
  box.role = "region";
  box.ariaLabel = `${box.closest("section")?.querySelector("h2")?.textContent ?? "Figures"}, as a table`;
}

byId("theme").addEventListener("click", () =>
  chooseTheme(themes[(themes.indexOf(currentTheme()) + 1) % themes.length]),
);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showTheme);
showTheme();
