import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useReducer } from "preact/hooks";

/** How often it was called, and the call. */
const useCount = () => useReducer<number, void>((times) => times + 1, 0);
export const useRedraw = (): (() => void) => useCount()[1];

/** Counts how often colours or the width have changed: a canvas does not follow the style sheet. */
export function useRedraws(): number {
  const [redraws, redraw] = useCount();
  useEffect(() => {
    const ended = new AbortController();
    let width = innerWidth;
    const onResize = () => {
      if (width !== innerWidth) redraw();
      width = innerWidth;
    };
    window.addEventListener("resize", onResize, ended);
    window.addEventListener("theme", () => redraw(), ended);
    return () => ended.abort();
  }, []);
  return redraws;
}

/** Calls `measure` before the next paint, and whenever the element has another size. */
export function useResized(box: RefObject<Element | null>, measure: () => void, inputs: unknown[] = []) {
  useLayoutEffect(() => {
    const observer = new ResizeObserver(measure);
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, inputs);
}
