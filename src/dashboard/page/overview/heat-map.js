// One strip of a heat map: one column per hour, day or month, with the shares of the states stacked in each column.

const states = ["covered", "settling", "open", "lost"];
const stateLabels = { covered: "covered", settling: "awaiting confirmation", open: "open", lost: "lost" };

/** Expands run lengths to one entry per column: [covered, settling, open, lost] in percent. */
export function expand(runs) {
  return runs.flatMap(([columns, ...shares]) => Array.from({ length: columns }, () => shares));
}

/** Describes a cell in words. */
export function describeCell(shares) {
  const parts = states.flatMap((state, i) => (shares[i] > 0 ? [`${shares[i]} % ${stateLabels[state]}`] : []));
  return parts.length > 0 ? parts.join(", ") : "not selected";
}

/** Describes a whole strip in words, for screen readers. */
export function summarize(cells) {
  const selected = cells.filter((shares) => shares.some((share) => share > 0));
  const mean = states.map(
    (_, i) => selected.reduce((sum, shares) => sum + shares[i], 0) / (selected.length || 1),
  );
  return describeCell(mean.map((share) => (share > 0 && share < 1 ? 1 : Math.round(share))));
}

/**
 * Draws at the resolution of the canvas. Every state that occurs gets at least one pixel: one lost minute in a day must not
 * vanish by rounding.
 */
export function draw(canvas, cells, paint) {
  const ratio = globalThis.devicePixelRatio || 1;
  const width = Math.round(canvas.clientWidth * ratio);
  const height = Math.round(canvas.clientHeight * ratio);
  if (width === 0) return;
  canvas.width = width;
  canvas.height = height;
  const pen = canvas.getContext("2d");
  const colours = states.map(paint);
  const none = paint("none");
  const minPixels = Math.ceil(1.5 * ratio);
  const gap = width / cells.length > 3.5 * ratio ? Math.round(ratio) : 0;
  cells.forEach((shares, column) => {
    const left = Math.round((column * width) / cells.length);
    const right = Math.round(((column + 1) * width) / cells.length);
    const across = Math.max(1, right - left - gap);
    pen.fillStyle = none;
    pen.fillRect(left, 0, across, height);
    // Worst state on top, so that even a small share is fully visible.
    let top = 0;
    const present = states.map((_, i) => i).filter((i) => shares[i] > 0);
    const total = present.reduce((sum, i) => sum + shares[i], 0);
    const free = total >= 99 ? 0 : height - Math.round((height * total) / 100);
    top = free;
    for (const i of present.toReversed()) {
      const isLast = i === present[0];
      const share = Math.max(minPixels, Math.round((height * shares[i]) / 100));
      const bottom = isLast ? height : Math.min(height, top + share);
      pen.fillStyle = colours[i];
      pen.fillRect(left, top, across, bottom - top);
      top = bottom;
    }
  });
}

/** The labels of days, months or years as [share of the width, text], at least `apart` columns from each other. */
export function axis(labels, apart) {
  const marks = [];
  let last = Number.NEGATIVE_INFINITY;
  labels.forEach((label, i) => {
    const isFirst = label.length > 10 ? label.endsWith(" 00:00") : label.endsWith("-01");
    if (!isFirst || i - last < apart || i > labels.length - apart * 0.8) return;
    last = i;
    marks.push([i / labels.length, axisLabel(label)]);
  });
  return marks;
}

const dateFormat = (options) => new Intl.DateTimeFormat("en", { ...options, timeZone: "UTC" });
const dayName = dateFormat({ day: "numeric", month: "short" });
const monthName = dateFormat({ month: "short" });

/** A day as its date, a month as its name (January with the year), a year as its number. */
function axisLabel(label) {
  if (label.length === 7) return label.slice(0, 4);
  if (label.length > 10) return dayName.format(Date.parse(`${label.slice(0, 10)}T00:00Z`));
  const name = monthName.format(Date.parse(label));
  return label.slice(5, 7) === "01" ? `${name} ${label.slice(0, 4)}` : name;
}
