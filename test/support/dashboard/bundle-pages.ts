import { writePages } from "../../../bundle-pages.ts";

/** Builds the pages once, before the first test serves them. */
export async function setup(): Promise<void> {
  await writePages();
}
