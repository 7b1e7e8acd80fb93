/** The bytes of a content do not have its hash. */
export class ContentDamaged extends Error {
  readonly code = 'CONTENT_DAMAGED'

  constructor(sha256: string) {
    super(`The bytes of the content ${sha256} have another hash.`)
  }
}

/** Returns a stream that passes a content on, and fails at its end when the bytes do not have the hash. */
export function hashChecked(sha256: string) {
  const hasher = new Bun.CryptoHasher('sha256')
  return new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      hasher.update(chunk)
      controller.enqueue(chunk)
    },
    flush() {
      if (hasher.digest('hex') !== sha256) throw new ContentDamaged(sha256)
    },
  })
}
