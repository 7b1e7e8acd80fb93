import { and, eq } from 'drizzle-orm'
import type { OpenCtx } from '../../accounts/guard'
import { iso } from '../../core/clock'
import { Problem } from '../../core/problem'
import { emit, toldEvent } from '../../jobs/outbox'
import type { Ending, Job, NewJob } from '../../jobs/queue'
import { events } from '../../jobs/tables'
import { Failure, type Work } from '../../jobs/work'
import type { Db, Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { type Asked, askedFor } from '../lambdas/asked'
import { causing, marking } from './causing'
import type { Happened, Occasion } from './occasion'
import { integrations, type Row } from './tables'
import { targets } from './targets'
import type { TargetKind } from './targets/target'
import { wants } from './triggers/event'

/** The kind of jobs that run an integration while nobody waits for it. */
export const RUN = 'integration'

/** Why it is run: an event (by its id), a time (ms), or a request that was answered already. */
export type Load = { integration: string; depth: number } & ({ event: string } | { due: number } | { asked: Asked })

/** Runs of one integration come one after the other. */
export const laneOf = (integration: string) => `${RUN} ${integration}`

/** The job that runs an integration. */
export const runOf = (load: Load, _id: string = Bun.randomUUIDv7()): NewJob & { _id: string } => ({
  ...{ _id, kind: RUN, lane: laneOf(load.integration), payload: load },
})

/** What a kind of target is like, whichever. */
export const targetOf = ({ targetKind }: Pick<Row, 'targetKind'>) => targets[targetKind] as unknown as TargetKind<never>

/** Runs an integration's target for a caller (`ctx.actor`), or nobody. What it causes is known to come of it. */
export const perform = (ctx: OpenCtx, row: Row, occasion: Occasion, depth: number): Promise<Response> =>
  targetOf(row).run(causing(ctx, { cause: row._id, depth }), row.target as never, {
    ...occasion,
    integration: row._id,
    depth,
  })

/** Does what nobody waits for, until it succeeds or is given up, which is told as an event. */
export const running: Work = {
  async run({ token: _, signal, ...tenant }, job): Promise<Ending> {
    const load = job.payload as Load
    const row = await activeNamed(tenant.db, load.integration)
    const occasion = row && (await occasionOf(tenant, row, load, job._id))
    // It was changed, switched off or removed meanwhile.
    if (!row || !occasion) return { state: 'done' }
    try {
      const { status } = await perform(tenant, row, { ...occasion, signal }, load.depth)
      if (status < 400) return { state: 'done' }
      throw new Failure(`Its target answered ${status}.`)
    } catch (error) {
      throw failing(error, job.attempts + 1 >= (targetOf(row).attempts ?? Number.POSITIVE_INFINITY))
    }
  },
  note,
}

/** An integration that is switched on. */
export const activeNamed = (db: Pick<Db, 'select'>, id: string) =>
  db
    .select()
    .from(integrations)
    .where(and(eq(integrations._id, id), eq(integrations.active, true)))
    .get()

/** With what it is run; nothing when it waits for something else by now. */
async function occasionOf({ db }: Tenant, { trigger }: Row, load: Load, _id: string): Promise<Occasion | undefined> {
  if ('asked' in load) return trigger.kind === 'webhook' ? { _id, trigger: 'webhook', asked: load.asked } : undefined
  const asked = askedFor({})
  if ('due' in load)
    return trigger.kind === 'schedule' ? { _id, trigger: 'schedule', asked, event: dueAsEvent(load, _id) } : undefined
  if (trigger.kind !== 'event') return
  const event = await db.select().from(events).where(eq(events._id, load.event)).get()
  if (!event) throw new Failure('The event was too old, and has been removed.', { hopeless: true })
  return wants(trigger, event) ? { _id, trigger: 'event', asked, event: toldEvent(event) } : undefined
}

const dueAsEvent = ({ integration, due }: { integration: string; due: number }, _id: string): Happened => ({
  ...{ _id, source: 'plugins', kind: 'schedule', eventName: 'due', description: 'A time has come.' },
  ...{ metadata: { integration, due: iso(due) }, user: null, workspace: null, created: iso(due) },
})

/** What can't be helped by trying again: what it refers to is gone. */
const HOPELESS = [404]

function failing(error: unknown, last: boolean): unknown {
  if (error instanceof Failure)
    return new Failure(error.message, { ...error.more, hopeless: error.more.hopeless || last })
  if (!(error instanceof Problem)) return error
  const { code, message, status } = error
  return new Failure(message, { outcome: { code, message }, hopeless: last || HOPELESS.includes(status) })
}

/** Tells of what was given up. */
async function note(tenant: Tenant, tx: Tx, endings: [Job, Ending][]) {
  for (const [job, ending] of endings) {
    if (ending.state !== 'dead') continue
    const { integration, depth } = job.payload as Load
    const row = await tx.select().from(integrations).where(eq(integrations._id, integration)).get()
    if (!row) continue
    const { name, targetKind, target } = row
    const called = name ?? integration
    await marking(tx, { cause: integration, depth }, () =>
      emit(tenant, tx, {
        ...{ source: 'plugins', kind: 'integration' },
        eventName: targetKind === 'lambda' ? 'lambda-failed' : 'delivery-failed',
        description: `The integration "${called}" failed, and is not tried again.`,
        metadata: { integration, name, target, run: job._id, attempts: job.attempts + 1, outcome: ending.outcome },
      }),
    )
  }
}
