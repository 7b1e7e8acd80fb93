import type { Ctx } from '../../accounts/guard'
import { modelOf } from '../../blueprints/blueprints'
import type { Model } from '../../blueprints/model'
import { mayRead, mayWrite, reachOf, reachOrRefuse } from '../../blueprints/rules'
import { config } from '../../config'
import { keepable, parseJson } from '../../core/body'
import { type Flaw, invalid, Problem } from '../../core/problem'
import { turn } from '../../core/turn'
import { Busy } from '../../storage/errors'
import type { Tx } from '../../storage/port'
import { waitsLong } from '../../tenancy/caller'
import { forget } from '../../tenancy/memory'
import { identifierOf } from '../document'
import { narrowed, searchOf, sightOf, taken } from '../entities'
import { Ahead } from './ahead'
import { cellsOf, docOfRow } from './csv'
import { type Format, formatOf } from './format'
import { type Line, Lines } from './lines'
import type { Operation } from './operation'
import { Rehearsal, rehearsed } from './rehearsal'
import { Run } from './run'
import { Journal } from './undo'

const SLICE = { lines: 100, text: 1 << 19 } // of one write, so that others get their turn
const PIECE = 1 << 13 // bytes that are looked at in one turn, for each may be a line
const ERRORS = 1_000
const TRIES = 10 // of a slice, when the database is busy

export type Imported = { imported: number; failed: number; errors: { line: number; code: string; message: string }[] }
type Asked = { format: Format; mode: 'create' | 'upsert'; dryRun: boolean; atomic: boolean }
type Planned = { line: number; operation: Operation }

/**
 * Reads entities from a body of lines as it comes in, and keeps them a slice at a time. Lines that are refused are told and
 * left out; with `atomic`, one such line leaves nothing. @throws 400, 403, 404, 413, 415
 */
export async function importAll(asked: Ctx, key: string, request: Request): Promise<Imported> {
  const ctx = narrowed(asked, request) as Ctx
  const model = await modelOf(ctx, key)
  const how = readAsked(request)
  if (how.mode === 'create' || !reachOf(model, 'update', ctx.actor)) reachOrRefuse(model, 'create', ctx.actor)
  waitsLong(request)
  const run = new Import(ctx, key, how, model)
  return run.all(linesOf(request, how.format === 'csv'))
}

class Import {
  #report: Imported = { imported: 0, failed: 0, errors: [] }
  #columns?: string[]
  #journal?: Journal
  #rehearsal?: Rehearsal

  constructor(
    private ctx: Ctx,
    private key: string,
    private how: Asked,
    private model: Model,
  ) {
    if (how.dryRun) this.#rehearsal = new Rehearsal(ctx.actor)
  }

  async all(lines: AsyncIterable<Line[]>): Promise<Imported> {
    if (this.how.atomic && !this.how.dryRun) this.#journal = await Journal.begin(this.ctx, this.key)
    try {
      let [slice, size]: [Planned[], number] = [[], 0]
      for await (const some of lines)
        for (const line of some) {
          const planned = await this.#plan(line)
          if (!planned) continue
          slice.push(planned)
          size += line.text.length
          if (slice.length < SLICE.lines && size < SLICE.text) continue
          await this.#keep(slice)
          ;[slice, size] = [[], 0]
        }
      await this.#keep(slice)
      if (this.how.format === 'csv' && !this.#columns)
        throw new Problem(400, 'MALFORMED_BODY', 'The file is empty: a CSV begins with a line that names its columns.')
      await this.#journal?.commit()
      this.#journal = undefined
    } finally {
      await this.#journal?.undo()
    }
    const { imported, failed, errors } = this.#report
    // Lines that make no sense were found before those of their slice that are refused.
    errors.sort((one, other) => one.line - other.line)
    return { imported: this.how.atomic && failed ? 0 : imported, failed, errors }
  }

  /** What a line asks for; nothing where it makes no sense, or names the columns. */
  async #plan({ line, text, flaw }: Line): Promise<Planned | undefined> {
    try {
      if (flaw) throw flaw
      const cells = this.how.format === 'csv' ? (cellsOf(text) ?? malformed('Check its quotes.')) : undefined
      if (cells && !this.#columns) {
        this.#columns = columnsOf(this.model, this.ctx, cells)
        return
      }
      const data = cells ? this.#row(cells) : readJson(text)
      const { identifier } = (data ?? {}) as { identifier?: unknown }
      const name = identifierOf({ properties: {}, twice: new Map(), identifier }) ?? ''
      return { line, operation: { op: name ? this.how.mode : 'create', name, data, _id: Bun.randomUUIDv7() } }
    } catch (error) {
      // Without columns, no line makes sense.
      if (this.how.format === 'csv' && !this.#columns) throw error
      await this.#fail(line, error)
    }
  }

  #row(cells: string[]) {
    const columns = this.#columns!
    if (cells.length !== columns.length)
      malformed(`It has ${cells.length} cells, but there are ${columns.length} columns.`)
    return keepable(docOfRow(this.model, columns, cells))
  }

  /** A slice at once; where something in it is refused, line by line. Again, where it is nobody's fault. */
  async #keep(slice: Planned[]) {
    let left = slice
    for (let tries = 1; left.length; tries++) {
      this.model = await modelOf(this.ctx, this.key)
      const sight = await sightOf(this.ctx, this.model)
      const failure = await this.#attempt(left, sight).then(
        () => undefined,
        (error) => ({ error }),
      )
      if (!failure) return this.#succeed(left)
      if (!isRefusal(failure.error)) {
        left = await this.#again(failure.error, left, tries)
        continue
      }
      // All is in vain, but what else is wrong can still be told.
      await this.#abandon()
      const each = await Promise.allSettled(left.map((one) => this.#attempt([one], sight)))
      const again: Planned[] = []
      let busy: unknown
      for (const [n, one] of each.entries()) {
        if (one.status === 'fulfilled') await this.#succeed([left[n]!])
        else if (isRefusal(one.reason)) await this.#fail(left[n]!.line, one.reason)
        else {
          again.push(left[n]!)
          busy = one.reason
        }
      }
      left = again.length ? await this.#again(busy, again, tries) : []
    }
  }

  #attempt(some: Planned[], sight: Awaited<ReturnType<typeof sightOf>>) {
    const [journal, rehearsal] = [this.#journal, this.#rehearsal]
    const model = rehearsal ? rehearsal.model(this.model) : this.model
    const operations = some.map(({ operation }) => operation)
    const ahead = new Ahead(model, this.ctx, operations)
    const work = async (tx: Tx) => {
      await journal?.renew(tx)
      const run = new Run(tx, model, this.ctx, sight, operations, ahead)
      await run.done()
      await journal?.note(tx, run.touched)
      return rehearsal ? rehearsal.end(model, run.made) : undefined
    }
    return ahead
      .through(() => this.ctx.write(work))
      .catch(rehearsed)
      .catch(taken)
  }

  async #again(error: unknown, left: Planned[], tries: number) {
    if (!(error instanceof Busy) || tries === TRIES) throw error
    forget(this.ctx, 'blueprints')
    await Bun.sleep(20 * tries)
    return left
  }

  async #succeed(some: Planned[]) {
    for (const { line, operation } of some) {
      const repeated = this.#rehearsal?.repeated(this.model, operation)
      if (repeated) await this.#fail(line, repeated)
      else this.#report.imported++
    }
  }

  async #fail(line: number, error: unknown) {
    if (!(error instanceof Problem)) throw error
    await this.#abandon()
    this.#report.failed++
    if (this.#report.errors.length >= ERRORS) return
    this.#report.errors.push({ line, code: error.code, message: told(error) })
  }

  /** With `atomic`, nothing that was done is kept, and what follows is only tried. */
  async #abandon() {
    const journal = this.#journal
    if (!journal) return
    this.#journal = undefined
    this.#rehearsal = new Rehearsal(this.ctx.actor)
    await journal.undo()
  }
}

const isRefusal = (error: unknown) => error instanceof Problem && error.status < 500

/** Several flaws in one sentence each, as far as they fit. */
function told({ message, more: { details } }: Problem) {
  const flaws = Array.isArray(details) ? (details as Flaw[]).map((flaw) => flaw.message) : []
  return (flaws.length ? flaws.slice(0, 5).join(' ') : message).slice(0, 500)
}

const malformed = (message: string): never => {
  throw new Problem(400, 'MALFORMED_LINE', `This line cannot be read. ${message}`)
}

function readJson(text: string): unknown {
  try {
    return parseJson(text)
  } catch (error) {
    if (error instanceof SyntaxError) return malformed('Each line is a JSON object.')
    throw error
  }
}

/** Columns that an export has, or that a body may have and that say nothing. */
const SYSTEM = ['_id', 'identifier', 'created', 'updated', 'user', 'workspace', 'blueprint', 'tenant', 'id']

function columnsOf(model: Model, { actor }: Ctx, cells: string[]): string[] {
  const columns = cells.map((cell) => cell.trim())
  const known = (name: string) => {
    const field = model.field.get(name)
    return field ? mayRead(field, actor) || mayWrite(field, actor) : SYSTEM.includes(name)
  }
  const flaws = columns.flatMap((name, n) => {
    const path = `columns/${n + 1}`
    if (!known(name)) return [{ path, message: `The blueprint "${model.key}" has no field "${name}".` }]
    return columns.indexOf(name) < n ? [{ path, message: `There are two columns "${name}".` }] : []
  })
  if (flaws.length) invalid(...flaws.slice(0, 100))
  return columns
}

const OPTIONS = ['format', 'mode', 'dryRun', 'atomic', 'bypassAdmin']

function readAsked(request: Request): Asked {
  const search = new URLSearchParams(searchOf(request))
  for (const name of search.keys())
    if (!OPTIONS.includes(name)) invalid({ path: name, message: `There is no option "${name}".` })
  const flag = (name: string) => {
    const value = search.get(name) ?? ''
    if (!/^(true|1|false|0|undefined|)$/.test(value)) invalid({ path: name, message: `${name} must be true or false.` })
    return value === 'true' || value === '1'
  }
  const mode = search.get('mode') || 'create'
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

const brokenOff = (cause: unknown): never => {
  throw new Problem(400, 'MALFORMED_BODY', 'The body broke off before its end.', { cause })
}

async function* linesOf(request: Request, quoted: boolean): AsyncGenerator<Line[]> {
  const limit = config.ATOLL_IMPORT_LIMIT
  const tooLarge = () =>
    new Problem(413, 'BODY_TOO_LARGE', `The body is too large: at most ${limit} bytes are taken here.`)
  if (Number(request.headers.get('content-length')) > limit) throw tooLarge()
  const [lines, reader] = [new Lines(quoted, config.ATOLL_BODY_LIMIT), request.body?.getReader()]
  try {
    for (let size = 0; reader; ) {
      const { done, value } = await reader.read().catch(brokenOff)
      if (done) break
      size += value.byteLength
      if (size > limit) throw tooLarge()
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
