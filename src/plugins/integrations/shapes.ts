import type { TObject, TProperties } from '@sinclair/typebox'
import { type Static, t } from 'elysia'
import { change, id, line, time } from '../../core/shapes'
import { growingListing, listing } from '../../storage/lists'
import { type Target, targetNames, targets } from './targets'
import { type Trigger, triggerNames, triggers } from './triggers'

const maybe = t.Optional
const roles = maybe(t.Array(line(128, 1), { maxItems: 100 }))

/** Some of the kinds; what else belongs to one, is checked by its own shape. */
const some = <Name extends string>(names: Name[]) =>
  t.Object(
    { kind: t.Unsafe<Name>(t.Union(names.map((name) => t.Literal(name)))) },
    { additionalProperties: t.Unknown() },
  )

const shown = <Kind>(kinds: Record<string, { shape: TObject }>) =>
  t.Unsafe<Kind>(
    t.Union(
      Object.entries(kinds).map(([kind, { shape }]) =>
        t.Object({ kind: t.Literal(kind), ...(shape.properties as TProperties) }),
      ),
    ),
  )

export const NewIntegration = t.Object({
  name: maybe(t.Nullable(line(200))),
  active: maybe(t.Boolean({ description: 'true unless told' })),
  guest: maybe(t.Boolean({ description: 'whether strangers may call its webhook' })),
  trigger: some(triggerNames),
  target: some(targetNames),
  roles: { ...roles, description: 'who may call it: one of these; anybody who is signed in, without any' },
  workspaceRoles: { ...roles, description: 'or one of these in the active workspace' },
  plugin: maybe(t.Nullable(id, { description: 'the plugin that it belongs to' })),
})
export type NewIntegration = Static<typeof NewIntegration>

export const IntegrationChange = change(NewIntegration)
export type IntegrationChange = Static<typeof IntegrationChange>

export const Integration = t.Object({
  _id: id,
  name: t.Nullable(t.String()),
  active: t.Boolean(),
  guest: t.Boolean(),
  trigger: shown<Trigger>(triggers),
  target: shown<Target>(targets),
  roles: t.Array(t.String()),
  workspaceRoles: t.Array(t.String()),
  plugin: t.Nullable(id),
  user: { ...id, description: 'who made it' },
  created: time,
  updated: time,
})

const csv = (description: string) => maybe(t.String({ description: `${description}; comma-separated` }))
const filters = {
  'trigger.kind': csv('kinds of triggers'),
  'target.kind': csv('kinds of targets'),
  kind: csv('kinds of either'),
  active: maybe(t.Union(['true', '1', 'false', '0', '', 'undefined'].map((value) => t.Literal(value)))),
  source: csv('the integration sources that targets go by'),
  plugin: csv('the plugins that they belong to'),
  user: csv('who made them'),
  _id: csv('identifiers'),
}
export const IntegrationList = t.Object({ ...listing, ...filters })
export type Filters = { [filter in keyof typeof filters]?: string }

export const Run = t.Object({
  _id: id,
  trigger: t.String({ description: '`webhook`, `event` or `schedule`' }),
  event: t.Nullable(id, { description: 'which has happened' }),
  due: t.Nullable(time, { description: 'which has come' }),
  state: t.String({ description: '`waiting`, or `dead`: given up' }),
  attempts: t.Number(),
  outcome: t.Nullable(t.Unknown(), { description: 'of its latest attempt' }),
  nextAttempt: t.Nullable(time, { description: 'nothing where it waits for those before it' }),
  created: time,
  finished: t.Nullable(time),
})
export type Run = Static<typeof Run>

export const RunList = t.Object({
  ...growingListing,
  state: maybe(t.Union(['waiting', 'dead', '', 'undefined'].map((state) => t.Literal(state)))),
})
