// Functions that all pages use: requests to the daemon, and output into the page. Names come from the service and could
// contain markup, so everything is inserted as text.

export const byId = (id) => document.getElementById(id);

/** Creates an element with a class, attributes and children, which are elements or text. */
export function element(tag, { className, ...attributes } = {}, ...children) {
  const created = document.createElement(tag);
  if (className) created.className = className;
  for (const [name, value] of Object.entries(attributes)) created.setAttribute(name, value);
  created.append(...children);
  return created;
}

export function setText(id, text) {
  const target = byId(id);
  if (target.textContent !== text) target.textContent = text;
}

/** Shows this text in place of the page's cards; an empty text shows the cards. */
export function showEmpty(text) {
  setText("empty-text", text);
  byId("empty").hidden = text === "";
}

/** After a failure, the next attempt comes as soon as this. */
export const RETRY_SECONDS = 5;
const REQUEST_TIMEOUT_MS = 30_000;

/** For people: a request without a response has a message that only the browser understands. */
export function describeError(error) {
  const hasNoAnswer = error instanceof TypeError || error.name === "TimeoutError";
  return hasNoAnswer ? "the daemon does not answer" : error.message;
}

export async function fetchJson(path) {
  const response = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) });
  if (!response.ok)
    throw new Error(errorText(await response.text()) || `${path} answered ${response.status}`);
  return response.json();
}

/** The error in the body of a failed response: JSON with `error`, or plain text. */
function errorText(body) {
  try {
    return String(JSON.parse(body).error);
  } catch {
    return body.trim();
  }
}

/** Runs `work` at once and then at an interval, sooner after a failure, while the page is visible. */
export function repeatWhileVisible(seconds, work, onError) {
  let timer;
  const run = async () => {
    let delay = seconds;
    clearTimeout(timer);
    try {
      if (!document.hidden) await work();
    } catch (error) {
      delay = RETRY_SECONDS;
      onError(error);
    }
    clearTimeout(timer);
    timer = setTimeout(run, delay * 1000);
  };
  document.addEventListener("visibilitychange", () => document.hidden || run());
  void run();
  return { now: run };
}
