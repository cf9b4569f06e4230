const DAY_MS = 86_400_000;
const MIN_LEFT_MS = 120_000;

/**
 * Waits for the next day in UTC if this one ends soon. For tests that store days before the present and run the program on the
 * machine's clock: midnight must not pass in between.
 */
export async function avoidMidnight(): Promise<void> {
  const leftMs = DAY_MS - (Date.now() % DAY_MS);
  if (leftMs < MIN_LEFT_MS) await new Promise((wake) => setTimeout(wake, leftMs + 1_000));
}
