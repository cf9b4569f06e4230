// What every page has: the search, the buttons for theme and zone, and colours for canvases.

import { render } from "preact";
import { SearchDialog } from "./combobox.tsx";
import "./live.tsx";
import { byId, readStored, store } from "./page-base.ts";
import { setLocalTime, zoneName } from "./time-format.ts";

/** Of the present theme, by name: a chart asks for each of its bars. */
const colours = new Map<string, string>();

/** A colour of the style sheet in the present theme, as a canvas understands it. */
export function cssColour(name: string): string {
  const known = colours.get(name);
  if (known !== undefined) return known;
  const probe = byId("probe");
  probe.style.color = `var(--${name})`;
  const { color } = getComputedStyle(probe);
  colours.set(name, color);
  return color;
}

/** By the scheme of colours: what it is called, how its button looks, and which one is next. */
const themes = {
  "": ["system", "◐", "light"],
  light: ["light", "☀", "dark"],
  dark: ["dark", "☾", ""],
} as const;
const { style } = document.documentElement;
const currentTheme = () => themes[style.colorScheme as keyof typeof themes];

/** Canvases do not follow the style sheet: they hear of it. */
function showTheme(): void {
  const [button, [name, glyph]] = [byId("theme"), currentTheme()];
  button.textContent = glyph;
  button.ariaLabel = button.title = `Theme: ${name}`;
  colours.clear();
  window.dispatchEvent(new Event("theme"));
}

function showZone(): void {
  const [zone, isLocal] = [byId("zone"), readStored("zone") === "local"];
  setLocalTime(isLocal);
  zone.textContent = isLocal ? zoneName() : "UTC";
  zone.ariaLabel = zone.title = `Times in ${isLocal ? "the zone of this browser" : "UTC"}`;
  zone.addEventListener("click", () => {
    store("zone", isLocal ? "UTC" : "local");
    location.reload();
  });
}

byId("theme").addEventListener("click", () => {
  const [, , next] = currentTheme();
  style.colorScheme = next;
  store("theme", next);
  showTheme();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showTheme);
showTheme();
showZone();
render(<SearchDialog />, byId("dialogs"));
