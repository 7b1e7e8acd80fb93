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
}

const EVENT_INTERVAL_MS = 1_000 // ms

/** Tells editors how far an import is, by events; only of one that takes longer than a second, and once in each at most. */
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

  /** It is over: done, or broken off by what was thrown. */
  async finish(error?: unknown) {
    if (this.#eventName === 'import-started') return
    const code = error && ((error as { code?: string }).code ?? 'INTERNAL')
    await this.#emit(error ? 'import-failed' : 'import-finished', code ? { code } : {})
  }

  /** An import does not fail because of what is told of it. */
  async #emit(eventName: string, more = {}) {
    const { key: kind, ctx, options, reader } = this
    const { imported: report, failed } = this.report
    const counts = { received: reader.received, size: reader.size ?? null, imported: report, failed }
    const metadata = { import: this.#import, ...options, ...counts, ...more }
    const by = { user: ctx.actor.user, workspace: ctx.actor.workspace?._id }
    await ctx
      .write((tx) => emit(ctx, tx, { source: 'blueprints', kind, eventName, metadata, ...by }))
      .catch((cause) => {
        if (!(cause instanceof Busy)) logError('PROGRESS_NOT_TOLD', { tenant: ctx.tenant, blueprint: kind, cause })
      })
  }
}
