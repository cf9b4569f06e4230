/** One HTTP answer as a value, before anything is written. */
export interface HttpAnswer {
  status: number;
  headers: Record<string, string>;
  body: Uint8Array;
}
