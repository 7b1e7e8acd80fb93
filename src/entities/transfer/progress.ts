import type { Ctx } from '../../accounts/guard'
import { now } from '../../core/clock'
import { report } from '../../core/log'
import { emit } from '../../jobs/outbox'
import { Busy } from '../../storage/errors'
import type { Imported } from './import'
import type { Asked, Incoming } from './incoming'

const EACH = 1_000 // ms

/** Tells editors how far an import is, by events; only of one that takes longer than a second, and once in each at most. */
export class Progress {
  readonly #import = Bun.randomUUIDv7()
  #told = now()
  #eventName = 'import-started'

  constructor(
    private ctx: Ctx,
    private key: string,
    private how: Asked,
    private incoming: Incoming,
    private imported: Imported,
  ) {}

  async tell() {
    if (now() - this.#told < EACH) return
    await this.#emit(this.#eventName)
    this.#eventName = 'import-progress'
    this.#told = now()
  }

  /** It is over: done, or broken off by what was thrown. */
  async end(error?: unknown) {
    if (this.#eventName === 'import-started') return
    const code = error && ((error as { code?: string }).code ?? 'INTERNAL')
    await this.#emit(error ? 'import-failed' : 'import-finished', code ? { code } : {})
  }

  /** An import does not fail because of what is told of it. */
  async #emit(eventName: string, more = {}) {
    const { key: kind, ctx, how, incoming } = this
    const { imported, failed } = this.imported
    const far = { received: incoming.received, size: incoming.size ?? null, imported, failed }
    const metadata = { import: this.#import, ...how, ...far, ...more }
    const by = { user: ctx.actor.user, workspace: ctx.actor.workspace?._id }
    await ctx
      .write((tx) => emit(ctx, tx, { source: 'blueprints', kind, eventName, metadata, ...by }))
      .catch((cause) => {
        if (!(cause instanceof Busy)) report('PROGRESS_NOT_TOLD', { tenant: ctx.tenant, blueprint: kind, cause })
      })
  }
}
