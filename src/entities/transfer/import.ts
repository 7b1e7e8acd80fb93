import type { Ctx } from '../../accounts/guard'
import { modelOf } from '../../blueprints/blueprints'
import type { Model } from '../../blueprints/model'
import { reachOf, reachOrRefuse } from '../../blueprints/rules'
import { keepable, parseJson } from '../../core/body'
import { type Flaw, Problem } from '../../core/problem'
import { Busy } from '../../storage/errors'
import type { Tx } from '../../storage/port'
import { waitsLong } from '../../tenancy/caller'
import { forget } from '../../tenancy/memory'
import { identifierOf } from '../document'
import { narrowed, sightOf, taken } from '../entities'
import { Ahead } from './ahead'
import { cellsOf, columnsOf, docOfRow } from './csv'
import { type Asked, Incoming, readAsked } from './incoming'
import type { Line } from './lines'
import type { Operation } from './operation'
import { FEW, Pace } from './pace'
import { Progress } from './progress'
import { Rehearsal, rehearsed } from './rehearsal'
import { Run } from './run'
import { Journal } from './undo'

const ERRORS = 1_000
const TRIES = 10 // of a slice, when the database is busy

export type Imported = { imported: number; failed: number; errors: { line: number; code: string; message: string }[] }
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
  const run = new Import(ctx, key, how, model, new Incoming(request))
  return run.all()
}

class Import {
  #report: Imported = { imported: 0, failed: 0, errors: [] }
  #columns?: string[]
  #journal?: Journal
  #rehearsal?: Rehearsal
  #pace = new Pace()
  #progress: Progress

  constructor(
    private ctx: Ctx,
    private key: string,
    private how: Asked,
    private model: Model,
    private incoming: Incoming,
  ) {
    this.#progress = new Progress(ctx, key, how, incoming, this.#report)
    if (how.dryRun) this.#rehearsal = new Rehearsal(ctx.actor)
  }

  async all(): Promise<Imported> {
    try {
      await this.#all()
    } catch (error) {
      await this.#progress.end(error)
      throw error
    }
    await this.#progress.end()
    const { imported, failed, errors } = this.#report
    // Lines that make no sense were found before those of their slice that are refused.
    errors.sort((one, other) => one.line - other.line)
    return { imported: this.how.atomic && failed ? 0 : imported, failed, errors }
  }

  async #all() {
    if (this.how.atomic && !this.how.dryRun) this.#journal = await Journal.begin(this.ctx, this.key)
    try {
      let [slice, size]: [Planned[], number] = [[], 0]
      for await (const some of this.incoming.lines(this.how.format === 'csv'))
        for (const line of some) {
          const planned = await this.#plan(line)
          if (!planned) continue
          slice.push(planned)
          size += line.text.length
          if (!this.#pace.isEnough(slice.length, size)) continue
          await this.#keep(slice)
          await this.#progress.tell()
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
  }

  /** What a line asks for; nothing where it makes no sense, or names the columns. */
  async #plan({ line, text, flaw }: Line): Promise<Planned | undefined> {
    try {
      if (flaw) throw flaw
      const cells = this.how.format === 'csv' ? (cellsOf(text) ?? malformed('Check its quotes.')) : undefined
      if (cells && !this.#columns) {
        this.#columns = columnsOf(this.model, this.ctx.actor, cells)
        return
      }
      const data = cells ? this.#row(cells) : readJson(text)
      const { identifier } = (data ?? {}) as { identifier?: unknown }
      const name = identifierOf(identifier) ?? ''
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

  /** A slice at once; where something in it is refused, a few lines at once, and of those line by line. */
  async #keep(slice: Planned[]) {
    if (slice.length > FEW) {
      this.model = await modelOf(this.ctx, this.key)
      const failure = await this.#attempt(slice, await sightOf(this.ctx, this.model)).then(failed, failedBy)
      if (!failure) return this.#succeed(slice)
      this.#pace.refused()
    }
    for (let at = 0; at < slice.length; at += FEW) await this.#keepFew(slice.slice(at, at + FEW))
  }

  /** Again, where it is nobody's fault. */
  async #keepFew(few: Planned[]) {
    let left = few
    for (let tries = 1; left.length; tries++) {
      this.model = await modelOf(this.ctx, this.key)
      const sight = await sightOf(this.ctx, this.model)
      const failure = await this.#attempt(left, sight).then(failed, failedBy)
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
      const began = performance.now()
      const run = new Run(tx, model, this.ctx, sight, operations, ahead)
      await run.done()
      await journal?.note(tx, run.touched)
      if (some.length >= FEW) this.#pace.kept(some.length, performance.now() - began)
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

const failed = () => undefined
const failedBy = (error: unknown) => ({ error })

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
