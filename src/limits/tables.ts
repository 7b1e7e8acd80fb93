import { integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** What a tenant has used on a day (UTC), in the unit of each kind. */
export const dailyUse = sqliteTable(
  'daily_use',
  { day: text().notNull(), kind: text().notNull(), amount: integer().notNull() },
  (table) => [primaryKey({ columns: [table.day, table.kind] })],
)

/** The highest part of a quota, in percent, for whose use an event was emitted; 0 when none was since it fell. */
export const quotaLevels = sqliteTable('quota_levels', {
  kind: text().primaryKey(),
  /** The day or the month, for use that begins anew with it; otherwise empty. */
  period: text().notNull(),
  level: integer().notNull(),
})
