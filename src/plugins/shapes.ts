import { type Static, t } from 'elysia'
import { Warning } from '../blueprints/shapes'
import { listParameter } from '../core/query-lists'
import { id, line, partialOf, strictObject, text, textMatching, time, webAddress } from '../core/shapes'
import { growingListQuery } from '../storage/pagination'

const maybe = t.Optional
const url = webAddress({ maxLength: 2_000 })
const eventField = line(200, 1)

export const PluginSubscription = strictObject({
  source: maybe({ ...eventField, description: 'the source of the event; default: `*` (any)' }),
  kind: maybe(eventField),
  eventName: maybe(eventField),
  hookUrl: { ...url, description: 'the URL that receives the events' },
  active: maybe(t.Boolean({ description: 'false after the URL has answered 410' })),
})

/** The fields that a manifest may declare. */
const manifestFields = {
  name: line(100, 1),
  description: maybe(text(10_000)),
  apiPath: maybe(
    t.Nullable(
      textMatching(
        '^[a-z0-9][a-z0-9_-]{0,62}$',
        'Begin apiPath with a lower-case letter or a digit, and use only lower-case letters, digits, _ and - (63 characters at most).',
      ),
      { description: 'requests to `/api/<apiPath>/…` are forwarded to `proxyUrl`' },
    ),
  ),
  proxyUrl: maybe(t.Nullable(url)),
  subscribedEvents: maybe(t.Array(PluginSubscription, { maxItems: 50 })),
}

/** The JSON at `manifestUrl`. URLs in it may be relative to `manifestUrl`. */
export const Manifest = t.Partial(t.Object(manifestFields))
export type Manifest = Static<typeof Manifest>

const secret = textMatching(
  '^whsec_[A-Za-z0-9+/]{32,88}={0,2}$',
  'Write the secret as whsec_ and 24 to 64 bytes in base64, or omit it to have one generated.',
  { description: 'whsec_ and 24 to 64 bytes in base64; default: generated' },
)

export const NewPlugin = t.Object(
  {
    ...manifestFields,
    name: maybe(manifestFields.name),
    manifestUrl: maybe(t.Nullable(url, { description: 'the manifest fills in the fields that are omitted here' })),
    active: maybe(t.Boolean()),
    secret: maybe(secret),
  },
  {
    'x-schema': {
      anyOf: [
        { 'x-name': 'with name', required: ['name'] },
        { 'x-name': 'by manifest', required: ['manifestUrl'] },
      ],
    },
  },
)
export type NewPlugin = Static<typeof NewPlugin>

export const PluginChange = partialOf(t.Omit(NewPlugin, ['secret']))
export type PluginChange = Static<typeof PluginChange>

export const SubscribedEvent = t.Object({
  source: t.String(),
  kind: t.String(),
  eventName: t.String(),
  hookUrl: t.String(),
  active: t.Boolean(),
})
export const PluginHealth = t.Object({
  status: t.Union([t.Literal('unknown'), t.Literal('ok'), t.Literal('failing')]),
  lastError: t.Nullable(t.String()),
  lastErrorAt: t.Nullable(time),
  lastSuccessAt: t.Nullable(time),
})

export const Plugin = t.Object({
  _id: id,
  name: t.String(),
  description: t.String(),
  manifestUrl: t.Nullable(t.String()),
  apiPath: t.Nullable(t.String()),
  proxyUrl: t.Nullable(t.String()),
  subscribedEvents: t.Array(SubscribedEvent),
  active: t.Boolean(),
  health: PluginHealth,
  created: time,
  updated: time,
  warnings: maybe(t.Array(Warning, { description: 'subscriptions to events that nothing records' })),
})
export type Plugin = Static<typeof Plugin>

const shownOnce = t.String({ description: 'shown only once' })
export const MadePlugin = t.Composite([Plugin, t.Object({ secret: shownOnce })])

export const Rotation = t.Object({ secret: maybe(secret) })
export const NewSecret = t.Object({
  secret: shownOnce,
  formerUntil: { ...time, description: 'both secrets sign until then' },
})
export const NewToken = t.Object({
  token: shownOnce,
  user: { ...id, description: 'the user that the token authenticates' },
})

const state = t.Union(['waiting', 'failing', 'delivered', 'dead', 'canceled'].map((name) => t.Literal(name)))
const option = (description: string) => maybe(t.String({ description }))

export const Delivery = t.Object({
  _id: { ...id, description: 'the header `webhook-id`' },
  event: id,
  source: t.String(),
  kind: t.String(),
  eventName: t.String(),
  hookUrl: t.String(),
  state: t.String({ description: 'waiting, failing (will be retried), delivered, dead (given up), canceled' }),
  attempts: t.Number(),
  status: t.Nullable(t.Number(), { description: 'of the latest response' }),
  durationMs: t.Nullable(t.Number()),
  answer: t.String({ description: 'the first 1,024 bytes of the response' }),
  error: t.Nullable(t.String()),
  nextAttempt: t.Nullable(time),
  created: time,
  updated: time,
})
export type Delivery = Static<typeof Delivery>

export const DeliveryList = t.Object({
  ...growingListQuery,
  state: maybe(t.Union([state, t.Literal(''), t.Literal('undefined')])),
  event: option('the id of an event'),
  source: listParameter('several values'),
  kind: listParameter('several values'),
  eventName: listParameter('several values'),
})
export type DeliveryFilters = Pick<Static<typeof DeliveryList>, 'state' | 'event' | 'source' | 'kind' | 'eventName'>
