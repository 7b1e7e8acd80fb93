import { index, primaryKey, sqliteTable, text, unique } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../../storage/columns'
import { users } from '../tables'

export const workspaces = sqliteTable(
  'workspaces',
  {
    _id: text().primaryKey(),
    name: text().notNull(),
    logo: text(),
    labels: text({ mode: 'json' }).$type<string[]>().notNull(),
    created: timestamp().notNull(),
    updated: timestamp().notNull(),
  },
  (table) => [index('workspaces_by_time').on(table.created, table._id)],
)

export const members = sqliteTable(
  'members',
  {
    workspace: text()
      .notNull()
      .references(() => workspaces._id, { onDelete: 'cascade' }),
    user: text()
      .notNull()
      .references(() => users._id, { onDelete: 'cascade' }),
    roles: text({ mode: 'json' }).$type<string[]>().notNull(),
    created: timestamp().notNull(),
  },
  (table) => [primaryKey({ columns: [table.workspace, table.user] }), index('members_by_user').on(table.user)],
)

export const invites = sqliteTable(
  'invites',
  {
    _id: text().primaryKey(),
    workspace: text()
      .notNull()
      .references(() => workspaces._id, { onDelete: 'cascade' }),
    /** The normalized address, which is unique in a workspace. */
    emailKey: text('email_key').notNull(),
    email: text().notNull(),
    name: text(),
    roles: text({ mode: 'json' }).$type<string[]>().notNull(),
    /** The roles that an admin of the tenant granted; they count even if they are restricted. */
    grantedRoles: text('granted_roles', { mode: 'json' }).$type<string[]>().notNull(),
    created: timestamp().notNull(),
  },
  (table) => [unique().on(table.workspace, table.emailKey), index('invites_by_email').on(table.emailKey)],
)
