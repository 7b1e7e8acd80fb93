import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { and, eq, gt, inArray, notInArray, sql } from 'drizzle-orm'
import { integer, primaryKey, sqliteTable, text, unique } from 'drizzle-orm/sqlite-core'
import { BrokenReference, Conflict, StorageFault } from '../../src/storage/errors'
import { DatabasePool } from '../../src/storage/pool'
import type { Tx } from '../../src/storage/port'
import { errorOf } from '../rejections'
import { engines } from './engines'
import { freshLocation, range } from './fixtures'

/** Shops sell books: keys of two columns, a unique column beside the key, a check, and references that cascade. */
const shops = sqliteTable('shops', { name: text().primaryKey(), street: text().unique(), size: integer().notNull() })
const books = sqliteTable(
  'books',
  { shop: text().notNull(), title: text().notNull(), sold: integer().notNull(), genre: text() },
  (table) => [primaryKey({ columns: [table.shop, table.title] }), unique().on(table.shop, table.genre)],
)
const migrations = {
  sqlite: [
    `create table shops (name text not null primary key, street text unique, size integer not null check (size >= 0)) strict`,
    `create table books (shop text not null references shops (name) on delete cascade, title text not null,
      sold integer not null, genre text, primary key (shop, title), unique (shop, genre)) strict`,
  ],
  postgres: [
    `create table shops (tenant_id uuid not null default current_setting('app.tenant')::uuid,
      name text collate "C" not null, street text collate "C", size bigint not null check (size >= 0),
      primary key (tenant_id, name), unique (tenant_id, street))`,
    `create table books (tenant_id uuid not null default current_setting('app.tenant')::uuid,
      shop text collate "C" not null, title text collate "C" not null, sold bigint not null, genre text collate "C",
      primary key (tenant_id, shop, title), unique (tenant_id, shop, genre),
      foreign key (tenant_id, shop) references shops (tenant_id, name) on delete cascade)`,
  ],
}

describe.each(engines)('%s: statements', (_, engine) => {
  const storage = new DatabasePool(engine(), { openCount: 2, deadline: 2_000 })
  const { db, write } = storage.getStore({ ...freshLocation(), bucket: 'statements' }, migrations)
  afterAll(() => storage.close())

  beforeEach(() =>
    write(async (tx) => {
      await tx.delete(shops)
      for (const [name, size] of [
        ['north', 10],
        ['south', 20],
        ['west', 30],
      ] as const)
        await tx.insert(shops).values({ name, street: `${name} street`, size })
      await tx.insert(books).values({ shop: 'north', title: 'Walden', sold: 7, genre: 'nature' })
      await tx.insert(books).values({ shop: 'north', title: 'Emma', sold: -7 })
      await tx.insert(books).values({ shop: 'south', title: 'Emma', sold: 2 ** 40 })
    }),
  )
  const names = async () => (await db.query('select name from shops order by name')).join()

  describe('an insert with an on conflict clause', () => {
    const emma = { shop: 'north', title: 'Emma', sold: 3, genre: 'novel' }
    const target = [books.shop, books.title]

    test('an upsert adds the old and the new value, returns the result and keeps other columns', async () => {
      const set = { sold: sql`${books.sold} + excluded.sold` }
      const upsert = (tx: Tx) => tx.insert(books).values(emma).onConflictDoUpdate({ target, set }).returning().get()
      expect(await write(upsert)).toEqual({ ...emma, sold: -4, genre: null })
      expect(await db.$count(books)).toBe(3)
    })

    test('an upsert replaces columns by the excluded values', async () => {
      const set = { sold: sql`excluded.sold`, genre: sql`excluded.genre` }
      await write((tx) => tx.insert(books).values(emma).onConflictDoUpdate({ target, set }))
      expect(await db.select().from(books).where(eq(books.genre, 'novel'))).toEqual([emma])
    })

    test('an upsert with a condition that does not hold changes and returns no row', async () => {
      const set = { sold: sql`excluded.sold` }
      const upsert = (sold: number) =>
        write((tx) =>
          tx
            .insert(books)
            .values({ ...emma, sold })
            .onConflictDoUpdate({ target, set, setWhere: sql`${books.sold} < excluded.sold` })
            .returning({ sold: books.sold }),
        )
      expect([await upsert(-8), await upsert(5), await upsert(4)]).toEqual([[], [{ sold: 5 }], []])
    })

    test('an insert with on conflict do nothing keeps the old row and returns no row', async () => {
      const upsert = (tx: Tx) => tx.insert(books).values(emma).onConflictDoNothing({ target }).returning()
      expect(await write(upsert)).toEqual([])
      expect(await db.$count(books, eq(books.sold, 3))).toBe(0)
    })

    test('an upsert that violates a key other than its target throws Conflict', async () => {
      const persuasion = { shop: 'north', title: 'Persuasion', sold: 1, genre: 'nature' }
      const upsert = (tx: Tx) =>
        tx
          .insert(books)
          .values(persuasion)
          .onConflictDoUpdate({ target, set: { sold: 1 } })
      expect(await errorOf(write(upsert))).toBeInstanceOf(Conflict)
    })
  })

  test('updates and deletes with returning return the affected rows', async () => {
    const changed = write((tx) => tx.update(shops).set({ size: 11 }).where(eq(shops.name, 'north')).returning())
    expect(await changed).toEqual([{ name: 'north', street: 'north street', size: 11 }])
    const removed = write((tx) => tx.delete(shops).where(gt(shops.size, 25)).returning({ name: shops.name }))
    expect(await removed).toEqual([{ name: 'west' }])
    expect(await write((tx) => tx.delete(shops).where(gt(shops.size, 25)).returning().get())).toBeUndefined()
    expect(await write((tx) => tx.query('update shops set size = 1 where size = 10 returning name', []))).toEqual([])
    expect(await names()).toBe('north,south')
  })

  test('an insert of several rows stores all of them or none', async () => {
    const rows = ['a', 'b', 'c'].map((name) => ({ name, size: 1 }))
    expect(await write((tx) => tx.insert(shops).values(rows).returning({ name: shops.name }))).toHaveLength(3)
    const again = [{ name: 'd', size: 1 }, rows[0]!]
    expect(await errorOf(write((tx) => tx.insert(shops).values(again)))).toBeInstanceOf(Conflict)
    expect(await names()).toBe('a,b,c,north,south,west')
  })

  test.each([
    ['limit 2', 'north,south'],
    ['limit 2 offset 1', 'south,west'],
    ['limit 0', ''],
    ['limit 5 offset 3', ''],
  ])('select with %s returns the page', async (page, expected) => {
    expect((await db.query(`select name from shops order by name ${page}`)).join()).toBe(expected)
    const [limit = 0, offset = 0] = page.match(/\d/g)!.map(Number)
    expect((await db.query('select name from shops order by name limit ? offset ?', [limit, offset])).join()).toBe(
      expected,
    )
  })

  test('a condition on an empty list matches no row with in and every row with not in', async () => {
    expect(await db.$count(shops, inArray(shops.name, []))).toBe(0)
    expect(await db.$count(shops, notInArray(shops.name, []))).toBe(3)
    expect(await db.$count(shops, inArray(shops.name, ['north', 'south', 'east']))).toBe(2)
    const none = db.select({ shop: books.shop }).from(books).where(eq(books.title, 'none'))
    expect(await db.$count(shops, inArray(shops.name, none))).toBe(0)
    expect(await db.$count(shops, notInArray(shops.name, none))).toBe(3)
  })

  test('a not in condition on a list with null matches no row', async () => {
    const genres = db.select({ genre: books.genre }).from(books)
    expect(await db.$count(books, inArray(books.genre, genres))).toBe(1)
    expect(await db.$count(books, notInArray(books.title, genres))).toBe(0)
  })

  test('a statement accepts 32,000 parameters', async () => {
    const list = range(32_000).map((n) => (n === 31_999 ? 'north' : `${n}`))
    expect(await db.$count(shops, inArray(shops.name, list))).toBe(1)
  })

  test('a row value in a subquery is compared by all of its columns', async () => {
    const found = "select title, sold from books where (shop, sold) in (select name, 7 from shops where street <> ')')"
    expect(await db.query(found)).toEqual([['Walden', 7]])
  })

  test.each<[string, unknown[]]>([
    ['count(*), count(genre), count(distinct title) from books', [3, 1, 2]],
    ['sum(sold), avg(size) from books join shops on name = shop', [2 ** 40, 40 / 3]],
    ['sum(sold), avg(sold), min(sold), max(sold) from books where sold < 0', [-7, -7, -7, -7]],
    ['sum(sold), avg(sold), min(title), max(sold), count(*) from books where 1 = 0', [null, null, null, null, 0]],
    [
      'sold / 2, -sold / 2, sold % 4, -sold % 4, sold * 0.5, sold / 2.0 from books where sold = 7',
      [3, -3, 3, -3, 3.5, 3.5],
    ],
    [`sold - 2 * 3 + 1, -sold, abs(-sold) from books where sold = 7`, [2, -7, 7]],
    ["title || ' ' || shop || sold, title || genre from books where sold = -7", ['Emma north-7', null]],
    [
      "length(name), length('😀ä'), substr(name, 2, 3), replace(name, 'o', '0'), trim('  a ') from shops where size = 10",
      [5, 2, 'ort', 'n0rth', 'a'],
    ],
    [
      "coalesce(genre, 'none'), coalesce(null, genre, title), nullif(title, 'Emma') from books where sold = -7",
      ['none', 'Emma', null],
    ],
    [
      "case when sold > 0 then 'some' when sold < 0 then 'less' else 'none' end, case shop when 'north' then 1 end from books where sold = -7",
      ['less', 1],
    ],
    ['count(*) from books where sold between -7 and 7 and genre is null or not (1 = 1)', [1]],
    ['count(*) from (select distinct title from books limit 5) as titles', [2]],
    [
      'name, (select count(*) from books where shop = name), (select 1 from books where shop = name limit 1) from shops where size = 30',
      ['west', 0, null],
    ],
    ['title, count(*), sum(sold) from books group by title having count(*) > 1', ['Emma', 2, 2 ** 40 - 7]],
    ['name, title from shops left join books on shop = name where title is null', ['west', null]],
  ])('select %s returns the same values on every engine', async (columns, expected) => {
    expect(await db.query(`select ${columns}`)).toEqual([expected])
  })

  test('sums of integers are exact up to 2^53 - 1', async () => {
    await write((tx) => tx.update(shops).set({ size: sql`9007199254740991 / 3` }))
    expect(await db.query('select sum(size) from shops')).toEqual([[2 ** 53 - 1 - ((2 ** 53 - 1) % 3)]])
  })

  test('union all and with combine several selects', async () => {
    const union = 'select name from shops where size < ? union all select title from books where sold = ? order by 1'
    expect(await db.query(union, [15, 7])).toEqual([['Walden'], ['north']])
    const parts = 'with big as (select name from shops where size > ?) select count(*) from big where name <> ?'
    expect(await db.query(parts, [15, 'west'])).toEqual([[1]])
  })

  test('an integer column matches a number given as text', async () => {
    expect(await db.query('select name from shops where size = ?', ['10'])).toEqual([['north']])
  })

  describe('constraint violations and invalid statements', () => {
    const insert = 'insert into shops (name, street, size) values (?, ?, ?)'
    test.each<[string, new (...args: never[]) => Error, string, unknown[]]>([
      ['a taken primary key', Conflict, insert, ['north', null, 1]],
      ['a taken unique value', Conflict, insert, ['east', 'west street', 1]],
      ['an update that makes two unique values equal', Conflict, "update shops set street = 'one'", []],
      [
        'a taken key of two columns',
        Conflict,
        'insert into books (shop, title, sold) values (?, ?, 1)',
        ['north', 'Emma'],
      ],
      [
        'a taken unique pair',
        Conflict,
        "update books set genre = 'nature' where title = ? and shop = 'north'",
        ['Emma'],
      ],
      [
        'an insert of a reference to a missing row',
        BrokenReference,
        'insert into books (shop, title, sold) values (?, ?, 1)',
        ['none', 'Emma'],
      ],
      [
        'an update to a reference to a missing row',
        BrokenReference,
        "update books set shop = 'none' where title = ?",
        ['Walden'],
      ],
      [
        'a changed key of a referenced row',
        BrokenReference,
        "update shops set name = 'none' where name = ?",
        ['north'],
      ],
      ['null in a not null column', StorageFault, insert, ['east', null, null]],
      ['a value that violates a check', StorageFault, insert, ['east', null, -1]],
      ['a text in a number column', StorageFault, insert, ['east', null, 'one']],
      ['a fraction in an integer column', StorageFault, insert, ['east', null, 1.5]],
      ['an unknown table', StorageFault, 'delete from nowhere', []],
      ['an unknown column', StorageFault, 'update shops set nothing = ?', [1]],
      ['invalid SQL', StorageFault, 'sell books', []],
    ])('%s is refused with the class of its error and changes no row', async (_, kind, statement, params) => {
      const before = await db.query('select * from shops order by name')
      const refused = await write((tx) => tx.query(statement, params)).catch((error) => error)
      expect(refused.constructor).toBe(kind)
      expect(refused).toHaveProperty('cause.message')
      const among = await write((tx) => tx.executeMany(statement, [params])).catch((error) => error)
      expect(among.constructor).toBe(kind)
      expect(await db.query('select * from shops order by name')).toEqual(before)
    })

    test('a delete cascades to the rows that reference the removed row', async () => {
      await write((tx) => tx.delete(shops).where(and(eq(shops.name, 'north'))))
      expect(await db.select({ shop: books.shop }).from(books)).toEqual([{ shop: 'south' }])
    })
  })

  test('an invalid query throws StorageFault, and the next query is answered', async () => {
    for (const [statement, params] of [
      ['select * from nowhere', []],
      ['select nothing from shops', []],
      ['no sql at all', []],
      ['select name from shops where size = ? and name = ?', [1]],
      ['select name from shops where size = ? and name = ?', [1, 'north', 'south']],
    ] as const) {
      const refused = await db.query(statement, [...params]).catch((error) => error)
      expect(refused.constructor, statement).toBe(StorageFault)
      expect(await db.query('select count(*) from shops')).toEqual([[3]])
    }
  })
})
