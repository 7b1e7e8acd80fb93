import { config } from '../../config'
import { yieldToEventLoop } from '../../core/event-loop'
import { openBody } from '../../core/incoming-body'
import { badRequest, Problem } from '../../core/problem'
import { parseFlag, parseOptional } from '../../core/shapes'
import { suggestName } from '../../core/unknown-keys'
import { getQueryString } from '../request'
import { type Format, parseFormat } from './format'
import { type Line, LineReader } from './line-reader'

const BYTES_PER_TURN = 1 << 13 // bytes per turn of the event loop, because each byte may be a line

/** The options of an import. */
export type ImportOptions = { format: Format; mode: 'create' | 'upsert'; dryRun: boolean; atomic: boolean }

const IMPORT_OPTIONS = ['format', 'mode', 'dryRun', 'atomic', 'bypassAdmin']

/** @throws 400, 415 */
export function parseImportOptions(request: Request): ImportOptions {
  const search = new URLSearchParams(getQueryString(request))
  for (const name of search.keys())
    if (!IMPORT_OPTIONS.includes(name))
      badRequest({ path: name, message: `Unknown option "${name}".${suggestName(name, IMPORT_OPTIONS)}` })
  const readFlag = (name: string) => !!parseFlag({ [name]: search.get(name) ?? undefined }, name)
  const mode = parseOptional(search.get('mode')) ?? 'create'
  if (mode !== 'create' && mode !== 'upsert')
    return badRequest({ path: 'mode', message: 'mode must be create or upsert.' })
  const format = parseFormat(search) ?? parseContentType(request)
  return { format, mode, dryRun: readFlag('dryRun'), atomic: readFlag('atomic') }
}

function parseContentType({ headers }: Request): Format {
  const type = headers.get('content-type') ?? ''
  if (/^application\/(x-)?(ndjson|jsonl|jsonlines)\s*(;|$)/i.test(type)) return 'ndjson'
  if (/^text\/csv\s*(;|$)/i.test(type)) return 'csv'
  const message = 'Send application/x-ndjson or text/csv, or set ?format=ndjson or ?format=csv.'
  throw new Problem(415, 'UNSUPPORTED_MEDIA_TYPE', message)
}

/** Reads the body of a request, a few lines at a time; only these are in memory. */
export class ImportReader {
  /** Bytes received so far. */
  received = 0
  /** The total number of bytes, if the request has a Content-Length. */
  readonly size: number | undefined

  constructor(private request: Request) {
    const contentLength = request.headers.get('content-length')
    this.size = contentLength === null ? undefined : Number(contentLength)
  }

  /** Yields the lines as they arrive. @throws 413; 400 for a body that ends unexpectedly */
  async *readLines(quoted: boolean): AsyncGenerator<Line[]> {
    if ((this.size ?? 0) > config.ATOLL_IMPORT_LIMIT) throwTooLarge()
    const [lines, body] = [new LineReader(quoted, config.ATOLL_BODY_LIMIT), openBody(this.request)]
    try {
      while (body) {
        const { value } = await body.read()
        if (!value) break
        this.received += value.byteLength
        if (this.received > config.ATOLL_IMPORT_LIMIT) throwTooLarge()
        for (let from = 0; from < value.byteLength; from += BYTES_PER_TURN) {
          yield lines.push(value.subarray(from, from + BYTES_PER_TURN))
          await yieldToEventLoop()
        }
      }
    } finally {
      body?.cancel()
    }
    yield lines.flush()
  }
}

function throwTooLarge(): never {
  const message = `The body is too large: at most ${config.ATOLL_IMPORT_LIMIT} bytes are allowed.`
  throw new Problem(413, 'BODY_TOO_LARGE', message)
}
