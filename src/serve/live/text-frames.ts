/** Frames are packed into chunks of about this size: one write for hundreds of ticks. */
const CHUNK_BYTES = 64 * 1024;

/** A websocket text frame. A server does not mask its frames, so the same bytes go to every client. */
export function encodeTextFrame(payload: string): Buffer {
  const packer = new FramePacker();
  packer.add(payload);
  return packer.take();
}

/** Packs text frames into one buffer. */
export class FramePacker {
  #buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get isFull(): boolean {
    return this.#length >= CHUNK_BYTES;
  }

  add(payload: string): void {
    // UTF-8 needs at most three bytes for a UTF-16 unit; the header at most ten.
    this.#reserve(payload.length * 3 + 10);
    const headerBytes = payload.length < 42 ? 2 : payload.length < 21_845 ? 4 : 10;
    const at = this.#length;
    const bytes = this.#buffer.write(payload, at + headerBytes);
    this.#buffer[at] = 0x81;
    if (headerBytes === 2) this.#buffer[at + 1] = bytes;
    else if (headerBytes === 4 && bytes >= 126) {
      this.#buffer[at + 1] = 126;
      this.#buffer.writeUInt16BE(bytes, at + 2);
    } else if (headerBytes === 4) {
      // The shortest form of the length is required.
      this.#buffer[at + 1] = bytes;
      this.#buffer.copyWithin(at + 2, at + 4, at + 4 + bytes);
      this.#length += bytes + 2;
      return;
    } else {
      const isShort = bytes < 65_536;
      if (isShort) this.#buffer.copyWithin(at + 4, at + 10, at + 10 + bytes);
      this.#buffer[at + 1] = isShort ? 126 : 127;
      if (isShort) this.#buffer.writeUInt16BE(bytes, at + 2);
      else this.#buffer.writeBigUInt64BE(BigInt(bytes), at + 2);
      this.#length += bytes + (isShort ? 4 : 10);
      return;
    }
    this.#length += bytes + headerBytes;
  }

  /** The packed frames; the packer is empty afterwards. */
  take(): Buffer {
    const frames = this.#buffer.subarray(0, this.#length);
    this.#buffer = Buffer.allocUnsafe(CHUNK_BYTES);
    this.#length = 0;
    return frames;
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#buffer.length) return;
    const grown = Buffer.allocUnsafe(Math.max(needed, 2 * this.#buffer.length));
    this.#buffer.copy(grown, 0, 0, this.#length);
    this.#buffer = grown;
  }
}
