import { config } from '../../config'
import { invalid, Problem } from '../../core/problem'
import { given } from '../../core/shapes'
import { turn } from '../../core/turn'
import { suggestionOf } from '../../core/unknown-keys'
import { searchOf } from '../entities'
import { type Format, formatOf } from './format'
import { type Line, Lines } from './lines'

const PIECE = 1 << 13 // bytes that are looked at in one turn, for each may be a line

/** How an import is to be done. */
export type Asked = { format: Format; mode: 'create' | 'upsert'; dryRun: boolean; atomic: boolean }

const OPTIONS = ['format', 'mode', 'dryRun', 'atomic', 'bypassAdmin']

/** @throws 400, 415 */
export function readAsked(request: Request): Asked {
  const search = new URLSearchParams(searchOf(request))
  for (const name of search.keys())
    if (!OPTIONS.includes(name))
      invalid({ path: name, message: `There is no option "${name}".${suggestionOf(name, OPTIONS)}` })
  const flag = (name: string) => {
    const value = search.get(name) ?? ''
    if (!/^(true|1|false|0|undefined|)$/.test(value)) invalid({ path: name, message: `${name} must be true or false.` })
    return value === 'true' || value === '1'
  }
  const mode = given(search.get('mode')) ?? 'create'
  if (mode !== 'create' && mode !== 'upsert') return invalid({ path: 'mode', message: 'The mode is create or upsert.' })
  const format = formatOf(search) ?? formatOfType(request)
  return { format, mode, dryRun: flag('dryRun'), atomic: flag('atomic') }
}

function formatOfType({ headers }: Request): Format {
  const type = headers.get('content-type') ?? ''
  if (/^application\/(x-)?(ndjson|jsonl|jsonlines)\s*(;|$)/i.test(type)) return 'ndjson'
  if (/^text\/csv\s*(;|$)/i.test(type)) return 'csv'
  const message = 'Send lines of JSON as application/x-ndjson, or text/csv; or say ?format=ndjson or ?format=csv.'
  throw new Problem(415, 'UNSUPPORTED_MEDIA_TYPE', message)
}

/** What comes in, a few lines at a time; no more than those are in memory. */
export class Incoming {
  /** Bytes so far. */
  received = 0
  /** Bytes in all, where that was said. */
  readonly size: number | undefined

  constructor(private request: Request) {
    const said = request.headers.get('content-length')
    this.size = said === null ? undefined : Number(said)
  }

  /** @throws 413, and 400 for a body that breaks off */
  async *lines(quoted: boolean): AsyncGenerator<Line[]> {
    if ((this.size ?? 0) > config.ATOLL_IMPORT_LIMIT) tooLarge()
    const [lines, reader] = [new Lines(quoted, config.ATOLL_BODY_LIMIT), this.request.body?.getReader()]
    try {
      while (reader) {
        const { done, value } = await reader.read().catch(brokenOff)
        if (done) break
        this.received += value.byteLength
        if (this.received > config.ATOLL_IMPORT_LIMIT) tooLarge()
        for (let from = 0; from < value.byteLength; from += PIECE) {
          yield lines.take(value.subarray(from, from + PIECE))
          await turn()
        }
      }
    } finally {
      // Nobody waits for it: a sender may never end.
      reader?.cancel().catch(() => {})
    }
    yield lines.end()
  }
}

const brokenOff = (cause: unknown): never => {
  throw new Problem(400, 'MALFORMED_BODY', 'The body broke off before its end.', { cause })
}

function tooLarge(): never {
  const message = `The body is too large: at most ${config.ATOLL_IMPORT_LIMIT} bytes are taken here.`
  throw new Problem(413, 'BODY_TOO_LARGE', message)
}
