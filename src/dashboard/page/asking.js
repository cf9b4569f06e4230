// What both pages are made with: asking the daemon, and putting what it says into the page. Everything that comes from
// the service is put in as text, never as markup: names are anybody's.

export const byId = (id) => document.getElementById(id);

/** An element with a class, attributes and children, which are elements or text. */
export function element(tag, { className, ...attributes } = {}, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function say(id, text) {
  const target = byId(id);
  if (target.textContent !== text) target.textContent = text;
}

export async function ask(path) {
  const response = await fetch(path, { cache: "no-store" });
  if (!response.ok)
    throw new Error(complaint(await response.text()) || `${path} answered ${response.status}`);
  return response.json();
}

/** The one line that an answer says instead of what was asked for. */
function complaint(body) {
  try {
    return String(JSON.parse(body).error);
  } catch {
    return body.trim();
  }
}

/** Does something at once and then every so often while somebody looks. */
export function whileVisible(seconds, act, failed) {
  let timer;
  const again = async () => {
    clearTimeout(timer);
    try {
      if (!document.hidden) await act();
    } catch (error) {
      failed(error);
    }
    clearTimeout(timer);
    timer = setTimeout(again, seconds * 1000);
  };
  document.addEventListener("visibilitychange", () => document.hidden || again());
  void again();
  return { now: again };
}

/** Asks every so often and shows the answer; one that fails to come leaves what is shown. */
export function follow(path, seconds, show, failed = () => {}) {
  return whileVisible(seconds, async () => show(await ask(path())), failed);
}
