// The funding rates of all perpetuals, with the last seven days of each.

import { pagePath } from "../../../model/answers/page-address.ts";
import { useAddress } from "../shared/address.ts";
import { contractColumns, type Row, ViewTable } from "../shared/data-table.tsx";
import { useLivePoll } from "../shared/live.tsx";
import { Card, mountPage, SearchField, Sheet, TrendLine } from "../shared/page.tsx";
import { countNoun, direction } from "../shared/text-format.ts";

function RateLine({ row }: { row: Row }) {
  const rates: (number | null)[] = JSON.parse(String(row.last_7_days));
  const last = rates.length - 1;
  const points = rates.flatMap((rate, at) => (rate === null ? [] : [[at / last, rate] as const]));
  const label = `Funding of 7 days, ${countNoun(points.length, "rate")}`;
  return <TrendLine {...{ points, label }} range={[0, 0]} tone={direction(points.at(-1)?.[1])} />;
}

const own = {
  ...contractColumns,
  funding_rate: { isWide: true },
  pair: {
    isWide: true,
    cell: ({ pair }: Row) => <a href={pagePath("derivatives", String(pair).split("/")[0] ?? "")}>{pair}</a>,
  },
  last_7_days: { className: "number", cell: (row: Row) => <RateLine row={row} /> },
};

const textOf = ({ contract, pair, exchange }: Row) => `${contract} ${pair} ${exchange}`;

function Funding() {
  const [view, go] = useAddress(undefined, { q: "", sort: "-open_interest_usd" });
  const on = ({ streams }: { streams: readonly string[] }) => streams.includes("derivative_ticks");
  const funding = useLivePoll("funding", {}, { what: "the funding rates", seconds: 60, on });
  const search = { label: "Contract, pair or exchange", value: view.q };
  return (
    <Sheet name="funding" title="Funding" note="per year: payments every 8 hours, without compounding">
      <Card
        {...{ name: "rates", title: "Perpetuals", of: [funding], room: "page" }}
        controls={<SearchField {...search} onChoose={(q) => go({ q }, "replace")} />}
      >
        {({ parts: { funding: part } }) => (
          <ViewTable
            {...{ id: "funding", label: "Perpetuals", part, own, step: 100 }}
            empty="No perpetuals are synced."
            sort={{ by: view.sort, onSort: (sort) => go({ sort }, "replace") }}
            search={{ text: view.q, of: textOf, none: "No contract has this name." }}
          />
        )}
      </Card>
    </Sheet>
  );
}

mountPage(<Funding />);
