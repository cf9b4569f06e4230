// Runs before the first paint, so that a chosen theme does not flash. Without a choice the system's theme applies.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch {
  // Storage is blocked: the system's theme applies.
}
