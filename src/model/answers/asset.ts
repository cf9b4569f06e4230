/** A value of a row. */
export type AssetValue = string | number | null;

/** One part of an asset's page: rows, and the SQL that reads them in any tool. */
export interface AssetSection {
  readonly key: AssetSectionKey;
  readonly sql: string;
  readonly rows: readonly Readonly<Record<string, AssetValue>>[];
}

export type AssetSectionKey =
  | "market"
  | "index"
  | "hours"
  | "coverage"
  | "gaps"
  | "revisions"
  | "daily"
  | "exchanges"
  | "futures"
  | "perpetuals";

/** Everything that the warehouse knows about one asset. */
export interface AssetResult {
  readonly generated_at: string;
  readonly asset_id: string;
  readonly symbol: string;
  readonly name: string | null;
  readonly sections: readonly AssetSection[];
}

/** No asset has this name; these are similar. */
export interface UnknownAsset {
  readonly near: readonly string[];
}
