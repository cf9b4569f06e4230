// Runs before the first paint and before the script of the page.

// No form is sent anywhere. A browser that must block one stops loading the page's script, so this cannot wait for it.
document.addEventListener("submit", (event) => event.preventDefault());

// A chosen theme must not flash. Without a choice, or if storage is blocked, the system's theme applies.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.style.colorScheme = chosen;
} catch {}
