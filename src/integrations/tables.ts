import { sql } from 'drizzle-orm'
import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../storage/columns'
import type { Target, TargetName } from './targets/index'
import type { Trigger, TriggerName } from './triggers/index'

/** What is done when something comes, happens or is due. */
export const integrations = sqliteTable(
  'integrations',
  {
    _id: text().primaryKey(),
    name: text(),
    active: integer({ mode: 'boolean' }).notNull(),
    /** Whether strangers may call it. */
    guest: integer({ mode: 'boolean' }).notNull(),
    triggerKind: text('trigger_kind').$type<TriggerName>().notNull(),
    trigger: text({ mode: 'json' }).$type<Trigger>().notNull(),
    targetKind: text('target_kind').$type<TargetName>().notNull(),
    target: text({ mode: 'json' }).$type<Target>().notNull(),
    /** The connection that its target goes by. */
    source: text(),
    roles: text({ mode: 'json' }).$type<string[]>().notNull(),
    workspaceRoles: text('workspace_roles', { mode: 'json' }).$type<string[]>().notNull(),
    /** To which plugin it belongs, and who made it. */
    plugin: text(),
    user: text().notNull(),
    /** The number of the event after which it listens. */
    since: integer().notNull(),
    /** Tells one state of it from another. */
    version: integer().notNull(),
    created: timestamp().notNull(),
    updated: timestamp().notNull(),
  },
  ({ created, _id, triggerKind, targetKind, active, since, source }) => [
    index('integrations_by_time').on(created, _id),
    index('integrations_by_trigger').on(triggerKind, active, since),
    index('integrations_by_target').on(targetKind, created, _id),
    index('integrations_of_source').on(source).where(sql`source is not null`),
  ],
)
export type IntegrationRow = typeof integrations.$inferSelect
