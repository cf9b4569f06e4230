import { DAYS_PER_YEAR } from "../../model/time.ts";
import type { SqlDialect } from "./sql-dialect.ts";

/*
 * Black's formula without interest. SQL has no normal distribution and no solver: the first is a polynomial here, the second a
 * bisection in a recursive query. Needs exp, ln and sqrt.
 */

const [MIN_VOLATILITY, MAX_VOLATILITY] = [1e-4, 5];
/** Each takes two steps of the recursion; together they find the volatility to 5e-12. */
const BISECTIONS = 40;
/** The forward is known about as exactly as this. A volatility that changes by more than a percentage point within it is not shown. */
const FORWARD_ERROR = 1e-5;
/** A ticker that is this much older than the newest of its expiry says nothing about the forward. */
const MAX_QUOTE_AGE = 6 * 3600 * 1_000_000;

/** PostgreSQL refuses an exponential that is too small for a double. */
const bell = (x: string) => `CASE WHEN abs(${x}) < 37 THEN exp(-${x} * ${x} / 2) ELSE 0.0 END`;

/** The distribution function of the normal distribution (Abramowitz and Stegun 7.1.26, error below 1.5e-7). */
function normal(x: string): string {
  const t = `(1 / (1 + 0.3275911 * abs(${x}) / ${Math.SQRT2}))`;
  const sum = `(0.254829592 + ${t} * (-0.284496736 + ${t} * (1.421413741 + ${t} * (-1.453152027 + ${t} * 1.061405429))))`;
  const tail = `${t} * ${sum} * ${bell(x)} / 2`;
  return `(CASE WHEN ${x} >= 0 THEN 1 - ${tail} ELSE ${tail} END)`;
}

/** d1 and d2 of the formula at a volatility. */
const distances = (volatility: string) =>
  ["+", "-"].map((sign) => `s.moneyness_log / (${volatility} * s.root) ${sign} ${volatility} * s.root / 2`);

/** Each price is computed in one step of the recursion, and compared in the next. */
const thenElse = (even: string, odd: string) => `CASE s.step % 2 WHEN 0 THEN ${even} ELSE ${odd} END`;

/** The columns of `latest_option_chain` that the view has too. */
const chainColumns =
  "exchange, pair, contract, contract_id, exchange_id, market_id, ts, time, expiration, days_to_expiry, option_type, strike";

/**
 * The newest ticker of each option that had not expired, with implied volatility and greeks. `chain`: rows of `latest_option_chain`
 * to take instead of all.
 */
export function optionGreeksView({ real, text, table }: SqlDialect, chain = table("latest_option_chain")) {
  const own = chainColumns.replaceAll(/\w+/g, "o.$&");
  const next = "(CASE WHEN s.price < s.worth THEN s.low + s.half ELSE s.low END)";
  const given = "s.contract_id, s.forward, s.strike, s.root, s.moneyness_log, s.worth";
  const [d1 = "", d2 = ""] = distances(`(${next} + s.half / 2)`);
  // What the call of the same strike is worth, by parity.
  const worthAsCall = "o.worth + CASE o.option_type WHEN 'CALL' THEN 0 ELSE o.forward - o.strike END";
  const volatility = "(s.low + s.half)";
  const delta = `${normal("s.d1")} - CASE o.option_type WHEN 'CALL' THEN 0 ELSE 1 END`;
  const density = `${bell("s.d1")} / ${Math.sqrt(2 * Math.PI)}`;
  return `WITH RECURSIVE chain AS (SELECT c.*, coalesce(c.mark_price, c.price) AS worth,
    max(c.ts) OVER (PARTITION BY c.market_id, c.expiration) - c.ts AS older
  FROM ${chain} c WHERE c.days_to_expiry > 0),
quotes AS (SELECT market_id, expiration, strike, option_type, worth, row_number() OVER (
    PARTITION BY market_id, expiration, strike, option_type ORDER BY coalesce(open_interest, 0) DESC, exchange, contract) AS place
  FROM chain WHERE older < ${MAX_QUOTE_AGE}),
parity AS (SELECT c.market_id, c.expiration, c.strike + (c.worth - p.worth) AS forward,
    row_number() OVER (PARTITION BY c.market_id, c.expiration ORDER BY abs(c.worth - p.worth), c.strike) AS place
  FROM quotes c JOIN quotes p ON p.market_id = c.market_id AND p.expiration = c.expiration AND p.strike = c.strike
  WHERE c.option_type = 'CALL' AND p.option_type = 'PUT' AND c.place = 1 AND p.place = 1 AND c.worth > 0 AND p.worth > 0),
options AS (SELECT c.*, coalesce(f.forward, c.index_price) AS forward
  FROM chain c LEFT JOIN parity f ON f.market_id = c.market_id AND f.expiration = c.expiration AND f.place = 1),
priced AS (SELECT o.contract_id, o.forward, o.strike, sqrt(o.days_to_expiry / ${DAYS_PER_YEAR}.0) AS root, ln(o.forward / o.strike) AS moneyness_log,
    ${worthAsCall} AS worth
  FROM options o WHERE o.worth > 0 AND o.forward > 0 AND o.strike > 0),
solved(step, contract_id, forward, strike, root, moneyness_log, worth, low, half, d1, d2, price) AS (
  SELECT 0, ${given}, ${real(String(MIN_VOLATILITY))}, ${real(String((MAX_VOLATILITY - MIN_VOLATILITY) / 2))},
    ${distances(real(String((MIN_VOLATILITY + MAX_VOLATILITY) / 2))).join(", ")}, ${real("0")} FROM priced s
  UNION ALL
  SELECT s.step + 1, ${given}, ${thenElse("s.low", next)}, ${thenElse("s.half", "s.half / 2")},
    ${thenElse("s.d1", d1)}, ${thenElse("s.d2", d2)},
    ${thenElse(`s.forward * ${normal("s.d1")} - s.strike * ${normal("s.d2")}`, "s.price")}
  FROM solved s WHERE s.step < ${2 * BISECTIONS})
SELECT ${own}, ${real("o.worth")} AS worth, ${real("o.forward")} AS forward,
  ${real(volatility)} AS implied_volatility,
  ${real(delta)} AS delta,
  ${real(`${density} / (s.forward * ${volatility} * s.root)`)} AS gamma,
  ${real(`s.forward * ${density} * s.root / 100`)} AS vega,
  ${real(`-s.forward * ${density} * ${volatility} / (2 * s.root) / ${DAYS_PER_YEAR}.0`)} AS theta,
  o.open_interest, o.index_price,
  ${text("CASE WHEN s.step IS NULL THEN coalesce(o.quality, 'no implied volatility') ELSE o.quality END")} AS quality,
  o.age_seconds, o.is_live
FROM options o LEFT JOIN solved s ON s.contract_id = o.contract_id AND s.step = ${2 * BISECTIONS}
  AND s.low > ${MIN_VOLATILITY} AND s.low + 2 * s.half < ${MAX_VOLATILITY}
  AND abs(${delta}) * ${FORWARD_ERROR * 100} <= (${density}) * s.root`;
}
