// What every page has: the theme button, and colours for canvases.

import "./live.ts";
import { byId } from "./page-base.ts";
import "./search-dialog.ts";
import { tellLocalTime, zoneName } from "./text-format.ts";

const glyphs = { system: "◐", light: "☀", dark: "☾" };
type Theme = keyof typeof glyphs;
const nextTheme = { system: "light", light: "dark", dark: "system" } as const;
const onThemeChange = new Set<() => void>();
const probe = document.createElement("i");

/** A colour of the style sheet in the present theme, as a canvas understands it. */
export function cssColour(name: string): string {
  if (!probe.isConnected) {
    probe.hidden = true;
    document.body.append(probe);
  }
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

/** The same colour with another opacity, from 0 to 1. */
export function withOpacity(colour: string, opacity: number): string {
  const [red = 0, green = 0, blue = 0] = colour.match(/[\d.]+/g) ?? [];
  return `rgba(${red}, ${green}, ${blue}, ${opacity})`;
}

/** Calls `redraw` whenever the theme changes: canvases do not follow the style sheet. */
export function watchTheme(redraw: () => void): () => void {
  onThemeChange.add(redraw);
  return () => void onThemeChange.delete(redraw);
}

function currentTheme(): Theme {
  const { theme } = document.documentElement.dataset;
  return theme === "light" || theme === "dark" ? theme : "system";
}

function showTheme(): void {
  const [button, theme] = [byId("theme"), currentTheme()];
  button.textContent = glyphs[theme];
  button.ariaLabel = button.title = `Theme: ${theme}`;
  for (const redraw of onThemeChange) redraw();
}

function chooseTheme(theme: Theme): void {
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

// ---- the zone of times

function chosenZone(): string | null {
  try {
    return localStorage.getItem("zone");
  } catch {
    return null;
  }
}

tellLocalTime(chosenZone() === "local");
const zone = byId("zone");
zone.textContent = chosenZone() === "local" ? zoneName() : "UTC";
zone.ariaLabel = zone.title = `Times in ${chosenZone() === "local" ? "the zone of this browser" : "UTC"}`;
zone.addEventListener("click", () => {
  try {
    localStorage.setItem("zone", chosenZone() === "local" ? "UTC" : "local");
    location.reload();
  } catch {
    // Storage is blocked: times stay in UTC.
  }
});

byId("theme").addEventListener("click", () => chooseTheme(nextTheme[currentTheme()]));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showTheme);
showTheme();
