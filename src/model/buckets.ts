import { crc32 } from "node:zlib";

/** Several daemons divide the series among them in this many parts. Fixed for ever: the bucket of a series follows from it. */
export const BUCKET_COUNT = 64;

/** The bucket of a series or, with an empty type, of a subscription to an exchange; an empty id: to all exchanges. */
export function bucketOf(indexType: string, indexId: string): number {
  return crc32(`${indexType}\0${indexId}`) % BUCKET_COUNT;
}
