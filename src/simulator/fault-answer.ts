/** An HTTP answer before compression, as faults read and change it. */
export interface PlainAnswer {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: Uint8Array;
}
