import { tryParseJson } from '../../core/json'
import { Problem } from '../../core/problem'
import type { ContentHold } from './content-hold'
import { isContentHash, openContentStore } from './content-store'
import type { NamedContent } from './named-contents'

const [NEWLINE, BRACE] = [10, 123]
const MAX_HEADER_BYTES = 200

/** The line before each part of a content. A part without bytes ends the content. */
type PartHeader = { content: string; bytes: number }

const damaged = () => new Problem(409, 'BACKUP_DAMAGED', 'The file cannot be used: its contents of files are invalid.')

/**
 * Yields the contents of a tenant's files as they follow the rows in an export, in parts of which each has a line of JSON
 * before it. `onContent` receives whether the store has a content.
 */
export async function* writeContents(
  tenant: string,
  contents: NamedContent[],
  hold: ContentHold,
  onContent: (content: NamedContent, isThere: boolean) => void,
): AsyncGenerator<string | Uint8Array> {
  const toHeader = (content: string, bytes: number) => `${JSON.stringify({ content, bytes } satisfies PartHeader)}\n`
  for (const content of contents) {
    await hold.renew()
    const { sha256 } = content
    const stored = await openContentStore()().open(tenant, sha256)
    onContent(content, !!stored)
    if (!stored) continue
    for await (const chunk of stored.stream()) {
      if (!chunk.length) continue
      yield toHeader(sha256, chunk.length)
      yield chunk
      yield '\n'
    }
    yield toHeader(sha256, 0)
  }
}

/** Reads an export: first its rows, then its contents. */
export class ExportReader {
  #chunks: AsyncIterator<Uint8Array>
  #rest: Uint8Array = new Uint8Array()
  #partLeft = 0

  constructor(content: AsyncIterable<Uint8Array>) {
    this.#chunks = content[Symbol.asyncIterator]()
  }

  /** Yields the lines of the rows, in pieces. The last one alone begins with a brace, as only the first one does else. */
  async *readRows(): AsyncGenerator<Uint8Array> {
    let [isFirst, before, isLast] = [true, -1, false]
    for (;;) {
      const chunk = await this.#next()
      if (!chunk) return
      let from = 0
      if (!isLast) {
        const start = findBraceAfterNewline(chunk, isFirst ? -1 : before)
        isLast = start !== -1
        from = Math.max(0, start)
      }
      ;[isFirst, before] = [false, chunk.at(-1)!]
      const end = isLast ? chunk.indexOf(NEWLINE, from) : -1
      if (end === -1) yield chunk
      else {
        this.#rest = chunk.subarray(end + 1)
        yield chunk.subarray(0, end + 1)
        return
      }
    }
  }

  /** Yields the contents in their order, to the end of the export. @throws 409 BACKUP_DAMAGED */
  async *readContents(): AsyncGenerator<{ sha256: string; parts: AsyncGenerator<Uint8Array> }> {
    for (;;) {
      const header = await this.#readHeader()
      if (!header) return
      const sha256 = header.content
      this.#partLeft = header.bytes
      yield { sha256, parts: this.#readParts(sha256) }
      // What nobody has read of it.
      for await (const _ of this.#readParts(sha256));
    }
  }

  /** Yields the bytes of a content that were not read before. */
  async *#readParts(sha256: string): AsyncGenerator<Uint8Array> {
    while (this.#partLeft) {
      const chunk = await this.#next()
      if (!chunk) throw damaged()
      const part = chunk.subarray(0, this.#partLeft)
      this.#rest = chunk.subarray(part.length)
      this.#partLeft -= part.length
      if (!this.#partLeft) this.#partLeft = await this.#beginPart(sha256)
      yield part
    }
  }

  async #readHeader(): Promise<PartHeader | undefined> {
    let line = Buffer.alloc(0)
    for (;;) {
      const chunk = await this.#next()
      if (!chunk) {
        if (line.length) throw damaged()
        return
      }
      const end = chunk.indexOf(NEWLINE)
      line = Buffer.concat([line, end === -1 ? chunk : chunk.subarray(0, end)])
      if (line.length > MAX_HEADER_BYTES) throw damaged()
      if (end === -1) continue
      this.#rest = chunk.subarray(end + 1)
      const { content, bytes } = (tryParseJson(line.toString()) ?? {}) as Partial<PartHeader>
      if (typeof content !== 'string' || !isContentHash(content)) throw damaged()
      if (!Number.isSafeInteger(bytes) || bytes! < 0) throw damaged()
      return { content, bytes: bytes! }
    }
  }

  /** Returns the size of the next part of a content, 0 at its end. */
  async #beginPart(sha256: string): Promise<number> {
    const chunk = await this.#next()
    if (chunk?.[0] !== NEWLINE) throw damaged()
    this.#rest = chunk.subarray(1)
    const header = await this.#readHeader()
    if (header?.content !== sha256) throw damaged()
    return header.bytes
  }

  /** Returns the next bytes, at least one, or undefined at the end. */
  async #next(): Promise<Uint8Array | undefined> {
    if (this.#rest.length) {
      const rest = this.#rest
      this.#rest = new Uint8Array()
      return rest
    }
    for (;;) {
      const { value, done } = await this.#chunks.next()
      if (done) return
      if (value.length) return value
    }
  }
}

/** Returns where a line begins with a brace, after the byte that came before; -1 when none does. */
function findBraceAfterNewline(chunk: Uint8Array, before: number): number {
  if (before === NEWLINE && chunk[0] === BRACE) return 0
  for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, at + 1))
    if (chunk[at + 1] === BRACE) return at + 1
  return -1
}
