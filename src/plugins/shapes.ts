import { type Static, t } from 'elysia'
import { change, id, line, part, text, textMatching, time, webAddress } from '../core/shapes'
import { growingListing } from '../storage/lists'

const maybe = t.Optional
const address = webAddress({ maxLength: 2_000 })
const some = line(200, 1)

const Subscription = part({
  source: maybe({ ...some, description: 'who tells it; any unless told, or `*`' }),
  kind: maybe(some),
  eventName: maybe(some),
  hookUrl: { ...address, description: 'where it is sent to' },
  active: maybe(t.Boolean({ description: 'false once its address has answered 410' })),
})

/** What a manifest may say, and a plugin is made of. */
const said = {
  name: line(100, 1),
  description: maybe(text(10_000)),
  apiPath: maybe(
    t.Nullable(
      textMatching(
        '^[a-z0-9][a-z0-9_-]{0,62}$',
        'Begin apiPath with a lower-case letter or a digit, and use only lower-case letters, digits, _ and - (63 characters at most).',
      ),
      { description: 'what comes in at `/api/<apiPath>/…` is passed on to `proxyUrl`' },
    ),
  ),
  proxyUrl: maybe(t.Nullable(address)),
  subscribedEvents: maybe(t.Array(Subscription, { maxItems: 50 })),
}

/** The JSON at `manifestUrl`. Addresses in it may be relative to its own. */
export const Manifest = t.Partial(t.Object(said))
export type Manifest = Static<typeof Manifest>

const secret = textMatching(
  '^whsec_[A-Za-z0-9+/]{32,88}={0,2}$',
  'Write the secret as whsec_ and 24 to 64 bytes in base64, or leave it out to have one made.',
  { description: 'whsec_ and 24 to 64 bytes in base64; made by us unless given' },
)

export const NewPlugin = t.Object(
  {
    ...said,
    name: maybe(said.name),
    manifestUrl: maybe(t.Nullable(address, { description: 'what it says fills what is not told here' })),
    active: maybe(t.Boolean()),
    secret: maybe(secret),
  },
  { 'x-schema': { anyOf: [{ required: ['name'] }, { required: ['manifestUrl'] }] } },
)
export type NewPlugin = Static<typeof NewPlugin>

export const PluginChange = change(t.Omit(NewPlugin, ['secret']))
export type PluginChange = Static<typeof PluginChange>

export const Plugin = t.Object({
  _id: id,
  name: t.String(),
  description: t.String(),
  manifestUrl: t.Nullable(t.String()),
  apiPath: t.Nullable(t.String()),
  proxyUrl: t.Nullable(t.String()),
  subscribedEvents: t.Array(
    t.Object({ source: t.String(), kind: t.String(), eventName: t.String(), hookUrl: t.String(), active: t.Boolean() }),
  ),
  active: t.Boolean(),
  health: t.Object({
    status: t.Union([t.Literal('unknown'), t.Literal('ok'), t.Literal('failing')]),
    lastError: t.Nullable(t.String()),
    lastErrorAt: t.Nullable(time),
    lastSuccessAt: t.Nullable(time),
  }),
  created: time,
  updated: time,
})
export type Plugin = Static<typeof Plugin>

const shownOnce = t.String({ description: 'shown only now' })
export const MadePlugin = t.Composite([Plugin, t.Object({ secret: shownOnce })])

export const Rotation = t.Object({ secret: maybe(secret) })
export const NewSecret = t.Object({ secret: shownOnce, formerUntil: { ...time, description: 'until then both sign' } })
export const NewToken = t.Object({ token: shownOnce, user: { ...id, description: 'as whom it comes' } })

const state = t.Union(['waiting', 'failing', 'delivered', 'dead', 'canceled'].map((one) => t.Literal(one)))
const option = (description: string) => maybe(t.String({ description }))

export const Delivery = t.Object({
  _id: { ...id, description: 'the header `webhook-id`' },
  event: id,
  source: t.String(),
  kind: t.String(),
  eventName: t.String(),
  hookUrl: t.String(),
  state: t.String({ description: 'waiting, failing (it will be tried again), delivered, dead (given up), canceled' }),
  attempts: t.Number(),
  status: t.Nullable(t.Number(), { description: 'of the latest answer' }),
  durationMs: t.Nullable(t.Number()),
  answer: t.String({ description: 'its first 1,024 bytes' }),
  error: t.Nullable(t.String()),
  nextAttempt: t.Nullable(time),
  created: time,
  updated: time,
})
export type Delivery = Static<typeof Delivery>

export const DeliveryList = t.Object({
  ...growingListing,
  state: maybe(t.Union([state, t.Literal(''), t.Literal('undefined')])),
  event: option('the id of an event'),
  source: option('comma-separated'),
  kind: option('comma-separated'),
  eventName: option('comma-separated'),
})
export type DeliveryFilters = Pick<Static<typeof DeliveryList>, 'state' | 'event' | 'source' | 'kind' | 'eventName'>
