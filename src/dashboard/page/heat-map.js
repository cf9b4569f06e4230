// One strip of a heat map: a column a day or a month, in each column the shares of its states, stacked.

const states = ["covered", "settling", "open", "lost"];
const words = { covered: "covered", settling: "awaiting confirmation", open: "open", lost: "lost" };

/** Run lengths back to one entry a column: [covered, settling, open, lost] in percents. */
export function expand(runs) {
  return runs.flatMap(([columns, ...shares]) => Array.from({ length: columns }, () => shares));
}

/** What a cell says in words. */
export function describe(shares) {
  const parts = states.flatMap((state, i) => (shares[i] > 0 ? [`${shares[i]} % ${words[state]}`] : []));
  return parts.length > 0 ? parts.join(", ") : "not asked for";
}

/** A whole strip in words, for those who cannot see it. */
export function summarise(cells) {
  const wanted = cells.filter((shares) => shares.some((share) => share > 0));
  const mean = states.map(
    (_, i) => wanted.reduce((sum, shares) => sum + shares[i], 0) / (wanted.length || 1),
  );
  return describe(mean.map((share) => (share > 0 && share < 1 ? 1 : Math.round(share))));
}

/**
 * Draws at the canvas's own resolution. A state that is there at all gets a pixel at least: one lost minute in a day
 * must not vanish in rounding.
 */
export function draw(canvas, cells) {
  const ratio = globalThis.devicePixelRatio || 1;
  const width = Math.round(canvas.clientWidth * ratio);
  const height = Math.round(canvas.clientHeight * ratio);
  if (width === 0) return;
  canvas.width = width;
  canvas.height = height;
  const pen = canvas.getContext("2d");
  const style = getComputedStyle(canvas);
  const paint = (name) => style.getPropertyValue(`--${name}`);
  const colours = states.map(paint);
  const none = paint("none");
  const least = Math.ceil(1.5 * ratio);
  const gap = width / cells.length > 3.5 * ratio ? Math.round(ratio) : 0;
  cells.forEach((shares, column) => {
    const left = Math.round((column * width) / cells.length);
    const right = Math.round(((column + 1) * width) / cells.length);
    const across = Math.max(1, right - left - gap);
    pen.fillStyle = none;
    pen.fillRect(left, 0, across, height);
    // From the worst down, so that a sliver of trouble is on top and whole.
    let top = 0;
    const present = states.map((_, i) => i).filter((i) => shares[i] > 0);
    const total = present.reduce((sum, i) => sum + shares[i], 0);
    const free = total >= 99 ? 0 : height - Math.round((height * total) / 100);
    top = free;
    for (const i of present.toReversed()) {
      const isLast = i === present[0];
      const share = Math.max(least, Math.round((height * shares[i]) / 100));
      const bottom = isLast ? height : Math.min(height, top + share);
      pen.fillStyle = colours[i];
      pen.fillRect(left, top, across, bottom - top);
      top = bottom;
    }
  });
}

/** Where the names of days, months or years stand, as [share of the width, text], not closer than `apart` columns. */
export function axis(labels, apart) {
  const marks = [];
  let last = Number.NEGATIVE_INFINITY;
  labels.forEach((label, i) => {
    const isFirst = label.length > 10 ? label.endsWith(" 00:00") : label.endsWith("-01");
    if (!isFirst || i - last < apart || i > labels.length - apart * 0.8) return;
    last = i;
    marks.push([i / labels.length, nameOf(label)]);
  });
  return marks;
}

const inWords = (options) => new Intl.DateTimeFormat("en", { ...options, timeZone: "UTC" });
const dayName = inWords({ day: "numeric", month: "short" });
const monthName = inWords({ month: "short" });

/** A day by its date, a month by its name, a year by its number; January says which year it is of. */
function nameOf(label) {
  if (label.length === 7) return label.slice(0, 4);
  if (label.length > 10) return dayName.format(Date.parse(`${label.slice(0, 10)}T00:00Z`));
  const name = monthName.format(Date.parse(label));
  return label.slice(5, 7) === "01" ? `${name} ${label.slice(0, 4)}` : name;
}
