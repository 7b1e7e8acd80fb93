import type { Ctx } from '../accounts/context'
import { referencesOf } from '../blueprints/references'
import type { Db } from '../storage/port'

/** The events that the system records, by source and kind. Those of entities have the key of their blueprint as kind. */
export const SYSTEM_EVENTS: Record<string, Record<string, string[]>> = {
  accounts: {
    user: ['user-registered', 'user-created', 'user-updated', 'user-removed'],
    support: ['support-opened'],
    signin: ['signin-failed', 'strangers-slowed'],
    impersonation: ['impersonation'],
    workspace: ['workspace-created', 'workspace-deleted'],
    invite: ['invite-created', 'invite-accepted', 'invite-declined'],
  },
  ai: { completion: ['completion', 'failure'] },
  plugins: {
    plugin: ['delivery-failed'],
    lambda: ['lambda-failed'],
    integration: ['lambda-failed', 'delivery-failed'],
  },
  payments: {
    subscription: [
      'subscription-created',
      'subscription-activated',
      'subscription-trialing',
      'subscription-renewed',
      'subscription-past-due',
      'subscription-canceled',
      'subscription-expired',
      'subscription-paused',
      'subscription-resumed',
      'subscription-conflict',
      'refund-offered',
      'checkout-failed',
      'coupon-redeemed',
      'coupon-lost',
      'provider-drift',
      'webhook-failed',
    ],
    webhook: ['webhook-failed'],
    invoice: ['invoice-paid', 'invoice-open', 'invoice-void'],
  },
  limits: { quota: ['quota-warning', 'quota-reached'] },
  storage: { database: ['database-damaged'] },
}

const CUSTOM = 'custom'
/** What an event has that a caller records without saying it. */
export const CALLER_EVENT: KnownEvent = { source: 'api', kind: CUSTOM, eventName: CUSTOM }

const IMPORT_EVENTS = ['import-started', 'import-progress', 'import-finished', 'import-failed']
/** The events of writes, which a blueprint records when its dispatchers say so. */
export const WRITE_EVENTS = ['create', 'update', 'delete'] as const
export const BLUEPRINT_SOURCE = 'blueprints'

const MAX_BLUEPRINTS = 1_000
const RECENT_EVENTS = 2_000 // of which callers' own sources, kinds and names are known

/** What identifies an event for those who wait for it. */
export type KnownEvent = { source: string; kind: string; eventName: string }

/** Returns the events that the system can record for a tenant, and those that others recorded lately. */
export async function listKnownEvents({ db }: Pick<Ctx, 'db'>): Promise<KnownEvent[]> {
  const known = [
    CALLER_EVENT,
    ...listSystemEvents(),
    ...(await listBlueprintEvents(db)),
    ...(await listRecentEvents(db)),
  ]
  return [...new Map(known.map((event) => [JSON.stringify(event), event])).values()]
}

const toEvents = (source: string, kind: string, names: readonly string[]): KnownEvent[] =>
  names.map((eventName) => ({ source, kind, eventName }))

const listSystemEvents = () =>
  Object.entries(SYSTEM_EVENTS).flatMap(([source, kinds]) =>
    Object.entries(kinds).flatMap(([kind, names]) => toEvents(source, kind, names)),
  )

async function listBlueprintEvents(db: Db): Promise<KnownEvent[]> {
  const { dispatchers } = await referencesOf(db)
  const keys = await db.query(`select key from blueprints order by key limit ${MAX_BLUEPRINTS}`)
  return keys.flatMap(([column]) => {
    const key = column as string
    const dispatched = WRITE_EVENTS.filter((name) => dispatchers.get(key)?.[name])
    return toEvents(BLUEPRINT_SOURCE, key, [...dispatched, ...IMPORT_EVENTS])
  })
}

async function listRecentEvents(db: Db): Promise<KnownEvent[]> {
  const recent = `select source, kind, event_name from events order by seq desc limit ${RECENT_EVENTS}`
  const rows = (await db.query(`select distinct source, kind, event_name from (${recent}) as recent`)) as string[][]
  return rows.map(([source, kind, eventName]) => ({ source: source!, kind: kind!, eventName: eventName! }))
}
