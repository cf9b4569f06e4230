import fc from "fast-check";

/** One seed for the whole run, printed, and set by MDS_SEED to repeat a run that failed. */
export const seed = Number(process.env.MDS_SEED ?? 20260301);

fc.configureGlobal({ seed, verbose: fc.VerbosityLevel.None });
