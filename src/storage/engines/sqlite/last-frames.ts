const FRAMES_PER_CHUNK = 256

/**
 * Collects the last frame of each page, as one transaction. Busy pages are in many frames, of which only the last one
 * counts. Chunks are not joined, because everything that is written passes here.
 */
export class LastFrames {
  #slots = new Map<number, number>()
  #chunks: Buffer[] = []
  #databasePages = 0

  constructor(private frameBytes: number) {}

  /** Copies the frames that count, which follow those before. */
  add(frames: Buffer) {
    const starts = new Map<number, number>()
    for (let start = 0; start < frames.length; start += this.frameBytes) {
      starts.set(frames.readUInt32BE(start), start)
      this.#databasePages = frames.readUInt32BE(start + 4) || this.#databasePages
    }
    for (const [page, start] of starts) {
      const { chunk, offset } = this.#locate(this.#takeSlot(page))
      frames.copy(chunk, offset, start, start + this.frameBytes)
      chunk.writeUInt32BE(0, offset + 4)
    }
  }

  /** Returns the frames, of which the last one ends the transaction. Nothing may be added afterwards. */
  finish(): Buffer[] {
    if (!this.#slots.size) return []
    const { chunk, offset } = this.#locate(this.#slots.size - 1)
    chunk.writeUInt32BE(this.#databasePages, offset + 4)
    this.#chunks.push(this.#chunks.pop()!.subarray(0, offset + this.frameBytes))
    return this.#chunks
  }

  #takeSlot(page: number): number {
    const known = this.#slots.get(page)
    if (known !== undefined) return known
    const slot = this.#slots.size
    this.#slots.set(page, slot)
    if (slot % FRAMES_PER_CHUNK === 0) this.#chunks.push(Buffer.allocUnsafeSlow(FRAMES_PER_CHUNK * this.frameBytes))
    return slot
  }

  #locate(slot: number) {
    const chunk = this.#chunks[Math.floor(slot / FRAMES_PER_CHUNK)]!
    return { chunk, offset: (slot % FRAMES_PER_CHUNK) * this.frameBytes }
  }
}
