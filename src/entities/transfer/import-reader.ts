import { config } from '../../config'
import { yieldToEventLoop } from '../../core/event-loop'
import { openBody } from '../../core/incoming-body'
import { badRequest, Problem } from '../../core/problem'
import { parseFlag, parseOptional } from '../../core/shapes'
import { requireTimeZone, type TimeZone } from '../../core/time-zone'
import { suggestName } from '../../core/unknown-keys'
import { getQueryString } from '../request'
import { type CsvDialect, parseCsvOptions } from './csv-dialect'
import type { CsvTable } from './csv-table'
import { type Format, parseFormat } from './format'
import { type Line, LineReader } from './line-reader'
import type { ImportReport } from './progress'
import { parseCharset, TextTranscoder } from './transcoder'

const BYTES_PER_TURN = 1 << 13 // bytes per turn of the event loop, because each byte may be a line

/** Where the lines of an import come from; `zone` is that of their times, where it is named. */
export type ImportSource = { reader: ImportReader; table?: CsvTable; zone?: TimeZone }

/** Returns what an import understood of a table, once it has begun. */
export function describeTable({ table, reader }: ImportSource): Pick<ImportReport, 'understood'> {
  const { columns, dialect } = table ?? {}
  return columns ? { understood: { separator: dialect!.separator!, encoding: reader.encoding, columns } } : {}
}

/** The options of an import. */
export type ImportOptions = { format: Format; mode: 'create' | 'upsert'; dryRun: boolean; atomic: boolean }

const CSV_OPTIONS = ['separator', 'decimal']
const IMPORT_OPTIONS = ['format', 'mode', 'dryRun', 'atomic', 'timezone', ...CSV_OPTIONS, 'bypassAdmin']

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
  if (format !== 'csv')
    for (const name of CSV_OPTIONS)
      if (search.has(name)) badRequest({ path: name, message: `${name} is an option of CSV files, not of NDJSON.` })
  return { format, mode, dryRun: readFlag('dryRun'), atomic: readFlag('atomic') }
}

/** Returns the time zone that an import names, or undefined. @throws 400 for an unknown one */
export function parseImportTimeZone(request: Request): TimeZone | undefined {
  const name = parseOptional(new URLSearchParams(getQueryString(request)).get('timezone'))
  return name === undefined ? undefined : requireTimeZone(name)
}

/** Returns what the query of an import says about a CSV file. @throws 400 */
export const parseImportCsvOptions = (request: Request) => parseCsvOptions(new URLSearchParams(getQueryString(request)))

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

  readonly #transcoder: TextTranscoder

  /** @throws 415 for a charset that cannot be read */
  constructor(
    private request: Request,
    format: Format,
  ) {
    const charset = parseCharset(request.headers.get('content-type') ?? '')
    if (format !== 'csv' && charset !== 'utf-8')
      throw new Problem(415, 'UNSUPPORTED_MEDIA_TYPE', 'Send NDJSON as UTF-8.')
    this.#transcoder = new TextTranscoder(charset)
    const contentLength = request.headers.get('content-length')
    this.size = contentLength === null ? undefined : Number(contentLength)
  }

  /** The encoding of the body, once it has begun. */
  get encoding() {
    return this.#transcoder.encoding
  }

  /** Yields the lines as they arrive. @throws 413; 400 for a body that ends unexpectedly */
  async *readLines(dialect: CsvDialect | undefined): AsyncGenerator<Line[]> {
    if ((this.size ?? 0) > config.ATOLL_IMPORT_LIMIT) throwTooLarge()
    const [lines, body] = [new LineReader(dialect, config.ATOLL_BODY_LIMIT), openBody(this.request)]
    try {
      while (body) {
        const { value } = await body.read()
        if (!value) break
        this.received += value.byteLength
        if (this.received > config.ATOLL_IMPORT_LIMIT) throwTooLarge()
        for (let from = 0; from < value.byteLength; from += BYTES_PER_TURN) {
          yield lines.push(this.#transcoder.push(value.subarray(from, from + BYTES_PER_TURN)))
          await yieldToEventLoop()
        }
      }
    } finally {
      body?.cancel()
    }
    yield lines.push(this.#transcoder.push(new Uint8Array(), true))
    yield lines.flush()
  }
}

function throwTooLarge(): never {
  const message = `The body is too large: at most ${config.ATOLL_IMPORT_LIMIT} bytes are allowed.`
  throw new Problem(413, 'BODY_TOO_LARGE', message)
}
