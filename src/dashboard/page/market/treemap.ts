// Assets as areas: the larger the market cap the larger the tile, the larger the change the stronger its colour.

import { hierarchy, treemap } from "d3-hierarchy";
import { cssColour, withOpacity } from "../shared/layout.ts";
import { element } from "../shared/page-base.ts";
import { amount, percentChange, quote, signOf } from "../shared/text-format.ts";

interface TileAsset {
  readonly symbol: string;
  readonly name: string | null;
  readonly price: number | null;
  readonly marketCap: number | null;
  readonly change24h: number | null;
}

const MAX_TILES = 80;
/** A change of so many percent has the strongest colour. */
const STRONG_CHANGE = 8;

const MIN_LABEL_PX = { width: 44, height: 22 };
/** About the width of a character at 11 px, and the padding of a tile. */
const CHARACTER_PX = 6.8;
const PADDING_PX = 8;

/** The root has only children, the leaves have only an asset. */
interface TreeNode<T> {
  readonly asset?: T;
  readonly children?: readonly TreeNode<T>[];
}

interface TreemapOptions<T> {
  readonly hrefOf: (asset: T) => string;
  readonly isWithoutFirst: boolean;
  /** The square root of the market cap, so that one asset does not take all the room. */
  readonly isSquareRoot: boolean;
}

interface Size {
  readonly width: number;
  readonly height: number;
}

/** The places of the assets with a market cap. */
function layOutTiles<T extends TileAsset>(
  assets: readonly T[],
  { width, height }: Size,
  { isWithoutFirst, isSquareRoot }: TreemapOptions<T>,
) {
  const children = assets.filter(({ marketCap }) => (marketCap ?? 0) > 0).map((asset) => ({ asset }));
  const first = isWithoutFirst ? 1 : 0;
  const sizeOf = (cap: number) => (isSquareRoot ? Math.sqrt(cap) : cap);
  const root = hierarchy<TreeNode<T>>({ children: children.slice(first, first + MAX_TILES) });
  return treemap<TreeNode<T>>()
    .size([width, height])
    .paddingInner(2)
    .round(true)(root.sum(({ asset }) => sizeOf(asset?.marketCap ?? 0)))
    .leaves()
    .flatMap(({ data: { asset }, x0, x1, y0, y1 }) =>
      asset ? [{ asset, x: x0, y: y0, width: x1 - x0, height: y1 - y0 }] : [],
    );
}

export function showTreemap<T extends TileAsset>(
  container: HTMLElement,
  assets: readonly T[],
  options: TreemapOptions<T>,
): void {
  const [up, down, none] = [cssColour("up"), cssColour("down"), cssColour("soft")];
  const { clientWidth: width, clientHeight: height } = container;
  const tiles = layOutTiles(assets, { width, height }, options);
  container.replaceChildren(
    ...tiles.map(({ asset, x, y, width, height }) => {
      const { symbol, change24h } = asset;
      const strength = Math.min(1, Math.abs(change24h ?? 0) / STRONG_CHANGE);
      const change = percentChange(change24h);
      const colour = { up, down, "": none }[signOf(change)];
      const label = `${symbol} ${change}`;
      const tile = element("a", {
        className: "tile",
        href: options.hrefOf(asset),
        title: `${label}\n${asset.name ?? ""}\n${quote(asset.price)} USD\nmarket cap ${amount(asset.marketCap)} USD`,
        "aria-label": label,
      });
      Object.assign(tile.style, {
        left: `${x}px`,
        top: `${y}px`,
        width: `${width}px`,
        height: `${height}px`,
        backgroundColor: withOpacity(colour, 0.14 + 0.4 * strength),
      });
      if (width >= MIN_LABEL_PX.width && height >= MIN_LABEL_PX.height) {
        tile.append(element("b", {}, symbol));
        const isWide = width >= change.length * CHARACTER_PX + PADDING_PX;
        // The space is not shown: it separates the words of the text.
        if (isWide && height >= 2 * MIN_LABEL_PX.height) tile.append(" ", element("span", {}, change));
        tile.style.fontSize = `${Math.max(11, Math.min(26, Math.sqrt(width * height) / 9))}px`;
      }
      return tile;
    }),
  );
}
