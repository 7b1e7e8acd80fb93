import type { TObject, TProperties, TSchema } from '@sinclair/typebox'
import { type Static, t } from 'elysia'
import { Warning } from '../blueprints/shapes'
import { listParameter } from '../core/query-lists'
import { id, line, partialOf, time } from '../core/shapes'
import { growingListQuery } from '../storage/pagination'
import { type Target, targetNames, targets } from './targets/index'
import { type Trigger, triggerNames, triggers } from './triggers/index'

const maybe = t.Optional
const roles = maybe(t.Array(line(128, 1), { maxItems: 100 }))

/** An object of one of these kinds. The other fields are validated with the shape of the kind. */
const kindField = <Name extends string>(names: Name[], described: TSchema) =>
  t.Object(
    { kind: t.Unsafe<Name>(t.Union(names.map((name) => t.Literal(name)))) },
    { additionalProperties: t.Unknown(), 'x-schema': described },
  )

const kindUnion = <Kind>(kinds: Record<string, { shape: TObject }>) =>
  t.Unsafe<Kind>(
    t.Union(
      Object.entries(kinds).map(([kind, { shape }]) =>
        t.Object({ kind: t.Literal(kind), ...(shape.properties as TProperties) }),
      ),
    ),
  )

export const IntegrationTrigger = kindUnion<Trigger>(triggers)
export const IntegrationTarget = kindUnion<Target>(targets)

export const NewIntegration = t.Object({
  name: maybe(t.Nullable(line(200))),
  active: maybe(t.Boolean({ description: 'default: true' })),
  guest: maybe(t.Boolean({ description: 'whether anonymous callers may call the webhook' })),
  trigger: kindField(triggerNames, IntegrationTrigger),
  target: kindField(targetNames, IntegrationTarget),
  roles: { ...roles, description: 'roles that may call it; default: all signed-in users' },
  workspaceRoles: { ...roles, description: 'roles in the active workspace that may call it' },
  plugin: maybe(t.Nullable(id, { description: 'the plugin to which it belongs' })),
})
export type NewIntegration = Static<typeof NewIntegration>

export const IntegrationChange = partialOf(NewIntegration)
export type IntegrationChange = Static<typeof IntegrationChange>

export const Integration = t.Object({
  _id: id,
  name: t.Nullable(t.String()),
  active: t.Boolean(),
  guest: t.Boolean(),
  trigger: IntegrationTrigger,
  target: IntegrationTarget,
  roles: t.Array(t.String()),
  workspaceRoles: t.Array(t.String()),
  plugin: t.Nullable(id),
  user: { ...id, description: 'the user who created it' },
  created: time,
  updated: time,
  warnings: maybe(t.Array(Warning, { description: 'events of its trigger that nothing records' })),
})

export const DueTimesQuery = t.Object({
  cron: t.String({ maxLength: 200, description: 'a cron expression' }),
  timezone: maybe(t.String({ maxLength: 64, description: 'an IANA name; default: UTC' })),
})
export const DueTimes = t.Object({
  times: t.Array(
    t.Object({
      due: time,
      local: t.String({ description: 'by the clocks of the zone, such as 2027-03-28T03:30:00+02:00' }),
    }),
  ),
})

const filters = {
  'trigger.kind': listParameter('kinds of triggers'),
  'target.kind': listParameter('kinds of targets'),
  kind: listParameter('kinds of either'),
  active: maybe(t.Union(['true', '1', 'false', '0', '', 'undefined'].map((value) => t.Literal(value)))),
  source: listParameter('ids of integration sources of the targets'),
  plugin: listParameter('ids of plugins'),
  user: listParameter('ids of the users who created them'),
  _id: listParameter('identifiers'),
}
export const IntegrationList = t.Object({ ...growingListQuery, ...filters })
export type Filters = { [filter in keyof typeof filters]?: string }

export const Run = t.Object({
  _id: id,
  trigger: t.String({ description: '`webhook`, `event` or `schedule`' }),
  event: t.Nullable(id, { description: 'the event that triggered the run' }),
  due: t.Nullable(time, { description: 'the scheduled time' }),
  state: t.String({ description: '`waiting`, or `dead`: given up' }),
  attempts: t.Number(),
  outcome: t.Nullable(t.Unknown(), { description: 'the result of the latest attempt' }),
  nextAttempt: t.Nullable(time, { description: 'null while it waits for earlier runs' }),
  created: time,
  finished: t.Nullable(time),
})
export type Run = Static<typeof Run>

export const RunList = t.Object({
  ...growingListQuery,
  state: maybe(t.Union(['waiting', 'dead', '', 'undefined'].map((state) => t.Literal(state)))),
})
