import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../storage/columns'
import type { Target, TargetName } from './targets/index'
import type { Trigger, TriggerName } from './triggers/index'

/** Integrations: a target that runs when a trigger fires. */
export const integrations = sqliteTable(
  'integrations',
  {
    _id: text().primaryKey(),
    name: text(),
    active: integer({ mode: 'boolean' }).notNull(),
    /** Whether anonymous callers may call it. */
    guest: integer({ mode: 'boolean' }).notNull(),
    triggerKind: text('trigger_kind').$type<TriggerName>().notNull(),
    trigger: text({ mode: 'json' }).$type<Trigger>().notNull(),
    targetKind: text('target_kind').$type<TargetName>().notNull(),
    target: text({ mode: 'json' }).$type<Target>().notNull(),
    /** The id of the connection of its target. */
    source: text(),
    roles: text({ mode: 'json' }).$type<string[]>().notNull(),
    workspaceRoles: text('workspace_roles', { mode: 'json' }).$type<string[]>().notNull(),
    /** The id of the plugin to which it belongs, and of the user who created it. */
    plugin: text(),
    user: text().notNull(),
    /** The sequence number (`seq`) of the event after which it receives events. */
    since: integer().notNull(),
    /** Grows with each change; part of the ETag. */
    version: integer().notNull(),
    created: timestamp().notNull(),
    updated: timestamp().notNull(),
  },
  ({ triggerKind, active, since }) => [index('integrations_by_trigger').on(triggerKind, active, since)],
)
export type IntegrationRow = typeof integrations.$inferSelect
