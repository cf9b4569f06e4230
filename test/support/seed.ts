import fc from "fast-check";

/** One seed for the whole run. It is printed; set MDS_SEED to repeat a failed run. */
export const seed = Number(process.env.MDS_SEED ?? 20260301);

fc.configureGlobal({ seed, verbose: fc.VerbosityLevel.None });
