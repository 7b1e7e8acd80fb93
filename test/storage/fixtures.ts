import { eq } from 'drizzle-orm'
import { blob, integer, real, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../../src/storage/columns'
import type { Store, Tx } from '../../src/storage/port'

/** A table with a column of every type. */
export const things = sqliteTable('things', {
  id: text().primaryKey(),
  count: integer().notNull(),
  part: text(),
  price: real(),
  live: integer({ mode: 'boolean' }),
  doc: text({ mode: 'json' }),
  bytes: blob({ mode: 'buffer' }),
  made: timestamp(),
})
export const migrations = {
  sqlite: [
    `create table things (id text not null primary key, count integer not null, part text references things (id),
      price real, live integer, doc text, bytes blob, made integer) strict`,
  ],
  postgres: [
    `create table things (tenant_id uuid not null default current_setting('app.tenant')::uuid,
      id text collate "C" not null, count bigint not null, part text collate "C", price double precision, live bigint,
      doc jsonb, bytes bytea, made bigint, primary key (tenant_id, id),
      foreign key (tenant_id, part) references things (tenant_id, id))`,
  ],
}

let placeCount = 0
/** Returns a location without a database. */
export const freshLocation = (tenant = `s${++placeCount}`) => ({
  tenant,
  file: `${tenant}.db`,
  identity: Bun.randomUUIDv7() as string,
  bucket: 'suite',
})

export const insertThing = (tx: Tx, id: string, count = 0) => tx.insert(things).values({ id, count }).run()
export const listIds = async ({ db }: Pick<Store, 'db'>) =>
  (await db.select().from(things).orderBy(things.id)).map(({ id }) => id).join()
export const listCounts = async ({ db }: Store) =>
  (await db.select().from(things).orderBy(things.id)).map(({ count }) => count)
export const increment = async (tx: Tx, id = 'a') => {
  const { count } = (await tx.select().from(things).where(eq(things.id, id)).get())!
  await tx
    .update(things)
    .set({ count: count + 1 })
    .where(eq(things.id, id))
}
export const range = (n: number) => Array.from({ length: n }, (_, i) => i)
