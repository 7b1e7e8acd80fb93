const [OPEN_BRACE, CLOSE_BRACE] = [123, 125]

/** The properties of a JSON object as bytes, each of which begins with a comma. */
export class TextBytes {
  #bytes = Buffer.allocUnsafe(1 << 12)
  #size = 0
  #isAscii = true

  clear(): this {
    this.#size = 0
    this.#isAscii = true
    return this
  }

  write(text: string) {
    const most = 3 * text.length
    if (this.#size + most >= this.#bytes.length) this.#grow(most)
    const written = this.#bytes.write(text, this.#size)
    if (written !== text.length) this.#isAscii = false
    this.#size += written
  }

  copy(source: Uint8Array, start: number, length: number) {
    if (this.#size + length >= this.#bytes.length) this.#grow(length)
    const [bytes, offset] = [this.#bytes, this.#size]
    let all = 0
    for (let at = 0; at < length; at++) {
      const byte = source[start + at]!
      all |= byte
      bytes[offset + at] = byte
    }
    if (all > 127) this.#isAscii = false
    this.#size += length
  }

  /** Returns the object. One byte more than its properties has room. */
  toJson(): string {
    if (this.#size === 0) return '{}'
    const bytes = this.#bytes
    bytes[0] = OPEN_BRACE
    bytes[this.#size] = CLOSE_BRACE
    return bytes.toString(this.#isAscii ? 'latin1' : 'utf8', 0, this.#size + 1)
  }

  #grow(length: number) {
    const larger = Buffer.allocUnsafe(2 * (this.#bytes.length + length))
    larger.set(this.#bytes.subarray(0, this.#size))
    this.#bytes = larger
  }
}
