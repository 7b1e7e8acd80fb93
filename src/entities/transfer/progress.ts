import type { Ctx } from '../../accounts/context'
import { now } from '../../core/clock'
import { logError } from '../../core/log'
import { emit } from '../../jobs/outbox'
import { Busy } from '../../storage/errors'
import type { ImportOptions, ImportReader } from './import-reader'

export type ImportReport = {
  imported: number
  failed: number
  errors: { line: number; code: string; message: string }[]
  /** How a CSV file was read; its columns are what they fill. */
  understood?: { separator: string; encoding: string; columns: string[] }
}

const EVENT_INTERVAL_MS = 1_000 // ms

/** Emits events about the progress of an import, if it takes longer than a second, and at most one per second. */
export class ImportProgress {
  readonly #import = Bun.randomUUIDv7()
  #emittedAt = now()
  #eventName = 'import-started'

  constructor(
    private ctx: Ctx,
    private key: string,
    private options: ImportOptions,
    private reader: ImportReader,
    private report: ImportReport,
  ) {}

  async emitIfDue() {
    if (now() - this.#emittedAt < EVENT_INTERVAL_MS) return
    await this.#emit(this.#eventName)
    this.#eventName = 'import-progress'
    this.#emittedAt = now()
  }

  /** Emits the last event, for a finished import or one that failed with an error. */
  async finish(error?: unknown) {
    if (this.#eventName === 'import-started') return
    const code = error && ((error as { code?: string }).code ?? 'INTERNAL')
    await this.#emit(error ? 'import-failed' : 'import-finished', code ? { code } : {})
  }

  /** An import does not fail when an event cannot be emitted. */
  async #emit(eventName: string, more = {}) {
    const { key: kind, ctx, options, reader } = this
    const { imported, failed } = this.report
    const counts = { received: reader.received, size: reader.size ?? null, imported, failed }
    const metadata = { import: this.#import, ...options, ...counts, ...more }
    const by = { user: ctx.actor.user, workspace: ctx.actor.workspace?._id }
    await ctx
      .write((tx) => emit(ctx, tx, { source: 'blueprints', kind, eventName, metadata, ...by }))
      .catch((cause) => {
        if (!(cause instanceof Busy)) logError('PROGRESS_NOT_TOLD', { tenant: ctx.tenant, blueprint: kind, cause })
      })
  }
}
