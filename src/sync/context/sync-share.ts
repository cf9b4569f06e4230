import type { SeriesTarget, TargetShare } from "../../ingest/commit/targets.ts";
import { bucketOf } from "../../model/buckets.ts";
import type { ShareChange } from "../../model/status/share-status.ts";
import { type HistoryStream, historyStreams } from "../../model/streams.ts";
import { normalise, type TimeRanges } from "../../model/time-range.ts";

/** Which part of the selection this daemon follows, if several share it. */
export class SyncShare {
  #buckets: ReadonlySet<number> | undefined;
  readonly #decided = Promise.withResolvers<void>();
  /** Buckets whose targets are to be declared anew, by stream. */
  readonly #fresh = new Map<HistoryStream, Set<number>>(historyStreams.map((stream) => [stream, new Set()]));
  /** By bucket, and by stream and series: what the shared warehouse had when the bucket was taken. */
  readonly #settled = new Map<number, Map<string, TimeRanges>>();

  /** Resolves when the share is known for the first time, or cannot be known now. */
  get decided(): Promise<void> {
    return this.#decided.promise;
  }

  /** The shared warehouse cannot be reached: the sync begins without it. */
  stopWaiting(): void {
    this.#decided.resolve();
  }

  /** False until the shared warehouse was reached: then the targets of the last run stay. */
  get isKnown(): boolean {
    return this.#buckets !== undefined;
  }

  follows(indexType: string, indexId: string): boolean {
    return this.#buckets?.has(bucketOf(indexType, indexId)) ?? false;
  }

  /** Whether this daemon follows a subscription; null: to all exchanges. In doubt it does: nobody can fetch it later. */
  followsExchange(exchangeId: string | null): boolean {
    return !this.isKnown || this.follows("", exchangeId ?? "");
  }

  update({ buckets, taken, settled }: ShareChange): void {
    this.#buckets = new Set(buckets);
    for (const bucket of taken) this.#settled.set(bucket, new Map());
    for (const { stream, indexType, indexId, settled: ranges } of settled)
      this.#settled
        .get(bucketOf(indexType, indexId))
        ?.set(`${stream} ${indexType} ${indexId}`, normalise(ranges));
    for (const fresh of this.#fresh.values()) for (const bucket of taken) fresh.add(bucket);
    this.#decided.resolve();
  }

  /** The targets of the share, each with what need not be fetched. */
  limit(stream: HistoryStream, targets: readonly SeriesTarget[]): SeriesTarget[] {
    return targets
      .filter(({ indexType, indexId }) => this.follows(indexType, indexId))
      .map((target) => {
        const { indexType, indexId } = target;
        const settledElsewhere = this.#settled
          .get(bucketOf(indexType, indexId))
          ?.get(`${stream} ${indexType} ${indexId}`);
        return settledElsewhere ? { ...target, settledElsewhere } : target;
      });
  }

  /** The buckets, and those whose targets are to be declared anew; the caller does that, or calls `repeat`. */
  describe(stream: HistoryStream): TargetShare {
    const fresh = this.#fresh.get(stream) ?? new Set();
    const described = { buckets: [...(this.#buckets ?? [])], fresh: [...fresh] };
    fresh.clear();
    return described;
  }

  /** The declaration failed. */
  repeat(stream: HistoryStream, { fresh }: TargetShare): void {
    for (const bucket of fresh) this.#fresh.get(stream)?.add(bucket);
  }
}
