import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "./instant.ts";

/* What the service's documentation promises in figures. */

/** How long intraday values are kept, in days. */
export const INTRADAY_DAYS = 200;
export const INTRADAY_WINDOW: Micros = INTRADAY_DAYS * MICROS_PER_DAY;
/** No intraday values are computed before this day. */
export const INTRADAY_BEGINS: Micros = Date.UTC(2019, 5, 1) * 1000;
/** How often intraday values and exchange tickers are refreshed, unless the settings say otherwise. */
export const USUAL_CADENCE: Micros = 30 * MICROS_PER_SECOND;
/** The most records of a page. */
export const LARGEST_PAGE = 2000;
