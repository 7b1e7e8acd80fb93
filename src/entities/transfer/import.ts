import type { Ctx } from '../../accounts/context'
import { WorkTurns } from '../../accounts/work-turns'
import { getModel } from '../../blueprints/blueprints'
import type { Model } from '../../blueprints/model'
import { Problem } from '../../core/problem'
import { assertQuotaLeft, openQuota } from '../../limits/quota-check'
import { isQuotaExceeded } from '../../limits/quota-description'
import { Busy } from '../../storage/errors'
import type { Tx } from '../../storage/port'
import { invalidate } from '../../tenancy/cache'
import { getReadableScopes, MissingReference, type ReadableScopes } from '../write/constraints'
import { rethrowConflict } from '../write/retry'
import { BatchExecutor } from './batch-executor'
import { AdaptiveBatchSize, MIN_BATCH_LINES } from './batch-size'
import {
  groupByReferences,
  HeldLines,
  type MissingName,
  type PlannedLine,
  sortByReferences,
  splitByStored,
} from './held-lines'
import { ImportDryRun, ignoreRollback } from './import-dry-run'
import { describeProblem, isRefusal, toFailure, toNoFailure } from './import-errors'
import { describeTable, type ImportOptions, type ImportSource } from './import-reader'
import { listOwnReferences } from './later-references'
import { planLine } from './line-plan'
import { LineSlice } from './line-slice'
import { resolveFilesOf } from './operation'
import { Precomputation } from './precomputation'
import { ImportProgress, type ImportReport } from './progress'
import { UndoJournal } from './undo-journal'

const MAX_REPORTED_ERRORS = 1_000
const MAX_ATTEMPTS = 10 // attempts per batch, when the database is busy

export class ImportRun {
  #report: ImportReport = { imported: 0, failed: 0, errors: [] }
  #turns: WorkTurns
  #journal?: UndoJournal
  #dryRun?: ImportDryRun
  #batchSize = new AdaptiveBatchSize()
  #progress: ImportProgress
  #isQuotaExceeded = false
  #held = new HeldLines()
  /** Lines whose targets have been imported. */
  #released: PlannedLine[] = []
  #pointsForwards = false
  #isAtEnd = false
  /** The first line that did not fit into the quota, among those that were tried last. */
  #quotaIndex = 0
  /** How many entities a dry run would have created. */
  #trialCount = 0

  constructor(
    private ctx: Ctx,
    private key: string,
    private options: ImportOptions,
    private model: Model,
    private source: ImportSource,
  ) {
    this.#turns = new WorkTurns(ctx)
    this.#progress = new ImportProgress(ctx, key, options, source.reader, this.#report)
    if (options.dryRun) this.#dryRun = new ImportDryRun(ctx.actor)
  }

  async run(): Promise<ImportReport> {
    try {
      await this.#readLines()
    } catch (error) {
      await this.#progress.finish(error)
      throw error
    }
    await this.#progress.finish()
    const { imported, failed, errors } = this.#report
    // Malformed lines were found before the rejected lines of their batch.
    errors.sort((one, other) => one.line - other.line)
    return { imported: this.options.atomic && failed ? 0 : imported, failed, errors, ...describeTable(this.source) }
  }

  async #readLines() {
    if (this.options.atomic && !this.options.dryRun) this.#journal = await UndoJournal.open(this.ctx, this.key)
    try {
      await this.#writeLines()
      await this.#writeHeld()
      if (this.options.dryRun) await this.#checkReferences()
      if (this.source.table && !this.source.table.isReadable)
        throw new Problem(400, 'MALFORMED_BODY', 'The file is empty: a CSV must start with a header line.')
      await this.#journal?.commit()
      this.#journal = undefined
    } finally {
      await this.#journal?.undo()
    }
  }

  /** Writes the lines in slices. While a database in another process writes one of them, the next one is read. */
  async #writeLines() {
    const isRemote = !!this.ctx.place?.cluster
    let slice = new LineSlice()
    let writing: Promise<void> | undefined
    try {
      for await (const lines of this.source.reader.readLines(this.source.table?.dialect)) {
        const planned = await this.#turns.run(() =>
          lines.map((line) => planLine(line, this.source, this.model, this.options.mode)),
        )
        for (const [n, { line, text }] of lines.entries()) {
          slice.add(line, text.length, planned[n])
          if (!this.#batchSize.isFull(slice.lines.length, slice.characters)) continue
          await writing
          writing = this.#writeSlice(slice)
          writing.catch(() => {}) // it is awaited later
          if (!isRemote) await writing
          slice = new LineSlice()
        }
      }
    } finally {
      await writing
    }
    await this.#writeSlice(slice)
  }

  /** Once a quota is exceeded, lines are only counted. */
  async #writeSlice({ lines, problems, count }: LineSlice) {
    if (this.#isQuotaExceeded) {
      this.#report.failed += count
      return
    }
    for (const { line, problem } of problems) await this.#reportLine(line, problem)
    await this.#writeAll(lines)
    await this.#progress.emitIfDue()
  }

  /** Reports the lines of a dry run whose references an import would refuse. */
  async #checkReferences() {
    const scopes = await getReadableScopes(this.ctx, this.model)
    const missing = await this.#dryRun!.findMissing(this.ctx.db, this.model, scopes.get(this.key))
    this.#report.imported -= missing.length
    for (const { line, error } of missing) await this.#reportLine(line, error)
  }

  /** Writes lines, and then those that waited for them. Lines that refer to later ones are held back. */
  async #writeAll(lines: PlannedLine[]) {
    for (let next = lines; next.length; next = this.#released.splice(0))
      for (const part of this.#batchSize.split(next)) await this.#writeBatch(await this.#holdBack(part))
  }

  /** Returns the lines without those that have to wait for others. */
  async #holdBack(lines: PlannedLine[], isCertain = this.#pointsForwards): Promise<PlannedLine[]> {
    const free = lines.filter((line) => !this.#held.has(line) || !this.#held.hold(line, line.operation.name))
    if (!isCertain) return sortByReferences(this.model, free)
    const { missing } = await splitByStored(this.ctx.db, this.model, free)
    const met = free.filter((line) => !missing.has(line) || !this.#held.hold(line, missing.get(line)!.root))
    return sortByReferences(this.model, met)
  }

  /** At the end of the file: lines that refer to each other are written together, and those without a target refused. */
  async #writeHeld() {
    this.#isAtEnd = true
    const waiting = this.#held.releaseAll()
    const { met, missing } = await splitByStored(this.ctx.db, this.model, waiting)
    const refused: PlannedLine[] = []
    for (const group of groupByReferences(this.model, met)) await this.#writeGroup(group, missing, refused)
    for (const line of refused) await this.#writeSmallBatch([line])
    for (const [{ line, operation }, { name }] of missing) {
      const { key } = listOwnReferences(this.model, operation).find(({ identifier }) => identifier === name)!
      await this.#reportLine(line, new MissingReference(key, this.key, name))
    }
  }

  /** Writes lines that refer to each other at once. One that is refused goes to `refused`, those that need it to `missing`. */
  async #writeGroup(group: PlannedLine[], missing: Map<PlannedLine, MissingName>, refused: PlannedLine[]) {
    for (let lines = group; lines.length; ) {
      const scopes = await getReadableScopes(this.ctx, this.model)
      const failure = await this.#attempt(lines, scopes).then(toNoFailure, toFailure)
      if (!failure) return this.#countImported(lines)
      const culprit = lines[this.#quotaIndex]
      if (!isRefusal(failure.error) || isQuotaExceeded(failure.error) || !culprit) return void refused.push(...lines)
      refused.push(culprit)
      const others = lines.filter((line) => line !== culprit)
      const rest = await splitByStored(this.ctx.db, this.model, others)
      for (const [line, name] of rest.missing) missing.set(line, name)
      lines = rest.met
    }
  }

  /** Writes a batch at once; if a line is rejected, writes it in small batches, and these line by line if needed. */
  async #writeBatch(slice: PlannedLine[]): Promise<void> {
    if (slice.length > MIN_BATCH_LINES) {
      this.model = await getModel(this.ctx, this.key)
      const failure = await this.#attempt(slice, await getReadableScopes(this.ctx, this.model)).then(
        toNoFailure,
        toFailure,
      )
      if (!failure) return this.#countImported(slice)
      if (this.#isForward(failure.error) && !this.#pointsForwards) {
        this.#pointsForwards = true
        return this.#writeBatch(await this.#holdBack(slice))
      }
      this.#batchSize.reset()
    }
    for (let at = 0; at < slice.length; at += MIN_BATCH_LINES)
      await this.#writeSmallBatch(slice.slice(at, at + MIN_BATCH_LINES))
  }

  /** Writes a small batch, and retries the lines that failed for other reasons than a rejection. */
  async #writeSmallBatch(lines: PlannedLine[]) {
    let remaining = lines
    if (this.#isQuotaExceeded) this.#report.failed += remaining.splice(0).length
    for (let tries = 1; remaining.length; tries++) {
      this.model = await getModel(this.ctx, this.key)
      const readableScopes = await getReadableScopes(this.ctx, this.model)
      const failure = await this.#attempt(remaining, readableScopes).then(toNoFailure, toFailure)
      if (!failure) return this.#countImported(remaining)
      if (isQuotaExceeded(failure.error)) return this.#endAtQuota(remaining, failure.error)
      if (!isRefusal(failure.error)) {
        remaining = await this.#waitAndRetry(failure.error, remaining, tries)
        continue
      }
      if (this.#isAtEnd && remaining.length === 1 && isRefusal(failure.error))
        return this.#reportLine(remaining[0]!.line, failure.error)
      if (this.#isForward(failure.error)) {
        this.#pointsForwards = true
        const met = await this.#holdBack(remaining, true)
        if (met.length < remaining.length) {
          remaining = met
          continue
        }
      }
      // An atomic import has failed, but the remaining errors can still be reported.
      await this.#undoAtomic()
      const outcomes = await Promise.allSettled(remaining.map((line) => this.#attempt([line], readableScopes)))
      const again: PlannedLine[] = []
      let busy: unknown
      for (const [n, outcome] of outcomes.entries()) {
        if (outcome.status === 'fulfilled') await this.#countImported([remaining[n]!])
        else if (this.#isForward(outcome.reason) && this.#held.hold(remaining[n]!, outcome.reason.identifier)) continue
        else if (isRefusal(outcome.reason)) await this.#reportLine(remaining[n]!.line, outcome.reason)
        else {
          again.push(remaining[n]!)
          busy = outcome.reason
        }
      }
      remaining = again.length ? await this.#waitAndRetry(busy, again, tries) : []
    }
  }

  /** Imports the lines before the one that exceeds a quota, which is the last one that is tried. */
  async #endAtQuota(lines: PlannedLine[], error: unknown) {
    const index = this.#quotaIndex
    if (index) await this.#writeSmallBatch(lines.slice(0, index))
    this.#report.failed += lines.length - index
    if (this.#isQuotaExceeded) return
    this.#isQuotaExceeded = true
    this.#report.failed-- // the line that is reported
    await this.#reportLine(lines[index]!.line, error, ' The import ends here.')
  }

  async #attempt(lines: PlannedLine[], scopes: ReadableScopes) {
    this.#quotaIndex = 0
    await assertQuotaLeft(this.ctx, 'storage')
    using reservation = await openQuota(this.ctx, 'entities', lines.length, this.#trialCount)
    let executor: BatchExecutor | undefined
    const [journal, dryRun] = [this.#journal, this.#dryRun]
    const model = dryRun ? dryRun.toDryRunModel(this.model) : this.model
    const operations = lines.map(({ operation }) => operation)
    const readable = { scopes, files: await resolveFilesOf(this.ctx, model, operations) }
    const precomputation = new Precomputation(model, this.ctx, operations)
    const work = async (tx: Tx) => {
      await journal?.renew(tx)
      const began = performance.now()
      executor = new BatchExecutor(tx, model, this.ctx, readable, operations, precomputation, { reservation })
      await executor.execute()
      await journal?.record(tx, executor.touched)
      if (lines.length >= MIN_BATCH_LINES) this.#batchSize.recordWrite(lines.length, performance.now() - began)
      return dryRun ? dryRun.rollBack(model, executor.drafts) : undefined
    }
    try {
      await precomputation.runWrite(() => this.ctx.write(work)).catch(ignoreRollback)
    } catch (error) {
      this.#quotaIndex = executor?.index ?? 0
      rethrowConflict(error)
    }
    if (dryRun) this.#trialCount += reservation?.held ?? 0
    else reservation?.keep()
  }

  async #waitAndRetry(error: unknown, remaining: PlannedLine[], tries: number) {
    if (!(error instanceof Busy) || tries === MAX_ATTEMPTS) throw error
    invalidate(this.ctx, 'blueprints')
    await Bun.sleep(20 * tries)
    return remaining
  }

  async #countImported(lines: PlannedLine[]) {
    for (const { line, operation } of lines) {
      const repeated = this.#dryRun?.findRepeated(this.model, operation)
      if (repeated) await this.#reportLine(line, repeated)
      else {
        this.#report.imported++
        this.#dryRun?.accept(this.model, { line, operation })
      }
      if (!repeated && operation.name) this.#released.push(...this.#held.release(operation.name))
    }
  }

  /** Whether a later line may yet create what is missing. */
  #isForward = (error: unknown): error is MissingReference =>
    error instanceof MissingReference && error.target === this.key && !this.#isAtEnd

  async #reportLine(line: number, error: unknown, note = '') {
    if (!(error instanceof Problem)) throw error
    await this.#undoAtomic()
    this.#report.failed++
    if (this.#report.errors.length >= MAX_REPORTED_ERRORS) return
    this.#report.errors.push({ line, code: error.code, message: describeProblem(error) + note })
  }

  /** Undoes an atomic import; the remaining lines become a dry run. */
  async #undoAtomic() {
    const journal = this.#journal
    if (!journal) return
    this.#journal = undefined
    this.#dryRun = new ImportDryRun(this.ctx.actor)
    await journal.undo()
  }
}
