/** Does the work of a list with so many at once, in the order of the list. The first error ends it, once all have stopped. */
export async function workThrough<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  let failed = false;
  const workers = Array.from({ length: Math.min(atOnce, items.length) }, async () => {
    while (next < items.length && !failed) {
      try {
        await work(items[next++] as T);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  });
  const results = await Promise.allSettled(workers);
  const broken = results.find((result) => result.status === "rejected");
  if (broken) throw broken.reason;
}
