// Assets as areas: the larger the market cap the larger the tile, the larger the change the stronger its colour.

import { hierarchy, treemap } from "d3-hierarchy";
import { useMemo, useRef, useState } from "preact/hooks";
import type { RankedAsset } from "../../../model/answers/market.ts";
import { pagePath } from "../../../model/answers/page-address.ts";
import { useResized } from "../shared/page-base.ts";
import { amount, percentChange, quote, signOf } from "../shared/text-format.ts";

export type MarketAsset = ReturnType<typeof toAssets>[number];

export function toAssets(assets: readonly RankedAsset[]) {
  // Of several assets with one symbol, the best-ranked has it in its address.
  const firstBySymbol = new Map(assets.toReversed().map(([id, symbol]) => [symbol, id]));
  return assets.map(
    ([id, symbol, name, rank, price, volume, marketCap, change24h, change7d, change30d, ts]) => ({
      ...{ id, symbol, name, rank, price, volume, marketCap, change24h, change7d, change30d, ts },
      href: pagePath("assets", firstBySymbol.get(symbol) === id ? symbol : id),
    }),
  );
}

const MAX_TILES = 80;
/** A change of so many percent has the strongest colour. */
const STRONG_CHANGE = 8;

const MIN_LABEL_PX = { width: 44, height: 22 };
/** About the width of a character at 11 px, and the padding of a tile. */
const CHARACTER_PX = 6.8;
const PADDING_PX = 8;

const small = { fontSize: "max(11px, 0.68em)" };

/** The root has only children, the leaves have only an asset. */
type TreeNode = { readonly asset?: MarketAsset; readonly children?: readonly TreeNode[] };

interface TreemapProps {
  readonly assets: readonly MarketAsset[];
  readonly isWithoutFirst: boolean;
  /** The square root of the market cap, so that one asset does not take all the room. */
  readonly isSquareRoot: boolean;
}

function layOutTiles({ assets, isWithoutFirst, isSquareRoot }: TreemapProps, size: [number, number]) {
  const children = assets.filter(({ marketCap }) => (marketCap ?? 0) > 0).map((asset) => ({ asset }));
  const first = isWithoutFirst ? 1 : 0;
  const sizeOf = (cap: number) => (isSquareRoot ? Math.sqrt(cap) : cap);
  const root = hierarchy<TreeNode>({ children: children.slice(first, first + MAX_TILES) });
  return treemap<TreeNode>()
    .size(size)
    .paddingInner(2)
    .round(true)(root.sum(({ asset }) => sizeOf(asset?.marketCap ?? 0)))
    .leaves()
    .flatMap(({ data: { asset }, x0, x1, y0, y1 }) =>
      asset ? [{ asset, left: x0, top: y0, width: x1 - x0, height: y1 - y0 }] : [],
    );
}

function Tile({ asset, ...place }: ReturnType<typeof layOutTiles>[number]) {
  const { symbol, name, price, marketCap, change24h, href } = asset;
  const { width, height } = place;
  const change = percentChange(change24h);
  const strength = Math.min(1, Math.abs(change24h ?? 0) / STRONG_CHANGE);
  const style = {
    ...Object.fromEntries(Object.entries(place).map(([side, px]) => [side, `${px}px`])),
    backgroundColor: `color-mix(in srgb, var(--${signOf(change) || "soft"}) ${(14 + 40 * strength).toFixed(1)}%, transparent)`,
    fontSize: `${Math.max(11, Math.min(26, Math.sqrt(width * height) / 9))}px`,
  };
  const hasLabel = width >= MIN_LABEL_PX.width && height >= MIN_LABEL_PX.height;
  const hasChange = width >= change.length * CHARACTER_PX + PADDING_PX && height >= 2 * MIN_LABEL_PX.height;
  const label = `${symbol} ${change}`;
  const title = `${label}\n${name ?? ""}\n${quote(price)} USD\nmarket cap ${amount(marketCap)} USD`;
  return (
    <a class="tile" href={href} title={title} aria-label={label} style={style}>
      {hasLabel && <b>{symbol}</b>}
      {/* The space is not shown: it separates the words of the text. */}
      {hasLabel && hasChange && [" ", <span key="change" style={small} children={change} />]}
    </a>
  );
}

/** Fills the element that it is in. */
export function Treemap({ assets, isWithoutFirst, isSquareRoot }: TreemapProps) {
  const box = useRef<HTMLDivElement>(null);
  const [[width, height], setSize] = useState<[number, number]>([0, 0]);
  useResized(box, () => setSize([box.current?.clientWidth ?? 0, box.current?.clientHeight ?? 0]));
  const tiles = useMemo(
    () => layOutTiles({ assets, isWithoutFirst, isSquareRoot }, [width, height]),
    [assets, isWithoutFirst, isSquareRoot, width, height],
  );
  return (
    <div ref={box} style={{ height: "100%" }}>
      {width > 0 && tiles.map((tile) => <Tile key={tile.asset.id} {...tile} />)}
    </div>
  );
}
