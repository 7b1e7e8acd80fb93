import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { and, eq, gt, inArray, notInArray, sql } from 'drizzle-orm'
import { integer, primaryKey, sqliteTable, text, unique } from 'drizzle-orm/sqlite-core'
import { BrokenReference, Conflict, StorageFault } from '../../src/storage/errors'
import { DatabasePool } from '../../src/storage/pool'
import type { Tx } from '../../src/storage/port'
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

describe.each(engines)('%s', (_, engine) => {
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

  describe('an insert that meets its like', () => {
    const emma = { shop: 'north', title: 'Emma', sold: 3, genre: 'novel' }
    const target = [books.shop, books.title]

    test('can add up the old and the new, find out the result, and leave the rest as it is', async () => {
      const set = { sold: sql`${books.sold} + excluded.sold` }
      const upsert = (tx: Tx) => tx.insert(books).values(emma).onConflictDoUpdate({ target, set }).returning().get()
      expect(await write(upsert)).toEqual({ ...emma, sold: -4, genre: null })
      expect(await db.$count(books)).toBe(3)
    })

    test('can take over the new', async () => {
      const set = { sold: sql`excluded.sold`, genre: sql`excluded.genre` }
      await write((tx) => tx.insert(books).values(emma).onConflictDoUpdate({ target, set }))
      expect(await db.select().from(books).where(eq(books.genre, 'novel'))).toEqual([emma])
    })

    test('can change it only on a condition, and returns nothing when that does not hold', async () => {
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

    test('can leave it, and returns nothing', async () => {
      const upsert = (tx: Tx) => tx.insert(books).values(emma).onConflictDoNothing({ target }).returning()
      expect(await write(upsert)).toEqual([])
      expect(await db.$count(books, eq(books.sold, 3))).toBe(0)
    })

    test('is a conflict where it meets another key than the one it names', async () => {
      const other = { shop: 'north', title: 'Persuasion', sold: 1, genre: 'nature' }
      const upsert = (tx: Tx) =>
        tx
          .insert(books)
          .values(other)
          .onConflictDoUpdate({ target, set: { sold: 1 } })
      await expect(write(upsert)).rejects.toBeInstanceOf(Conflict)
    })
  })

  test('a change and a removal return what they met, and nothing when they met nothing', async () => {
    const changed = write((tx) => tx.update(shops).set({ size: 11 }).where(eq(shops.name, 'north')).returning())
    expect(await changed).toEqual([{ name: 'north', street: 'north street', size: 11 }])
    const removed = write((tx) => tx.delete(shops).where(gt(shops.size, 25)).returning({ name: shops.name }))
    expect(await removed).toEqual([{ name: 'west' }])
    expect(await write((tx) => tx.delete(shops).where(gt(shops.size, 25)).returning().get())).toBeUndefined()
    expect(await write((tx) => tx.query('update shops set size = 1 where size = 10 returning name', []))).toEqual([])
    expect(await names()).toBe('north,south')
  })

  test('several rows go in by one statement, or none of them', async () => {
    const rows = ['a', 'b', 'c'].map((name) => ({ name, size: 1 }))
    expect(await write((tx) => tx.insert(shops).values(rows).returning({ name: shops.name }))).toHaveLength(3)
    const again = [{ name: 'd', size: 1 }, rows[0]!]
    await expect(write((tx) => tx.insert(shops).values(again))).rejects.toBeInstanceOf(Conflict)
    expect(await names()).toBe('a,b,c,north,south,west')
  })

  test.each([
    ['limit 2', 'north,south'],
    ['limit 2 offset 1', 'south,west'],
    ['limit 0', ''],
    ['limit 5 offset 3', ''],
  ])('a page: %s', async (page, expected) => {
    expect((await db.query(`select name from shops order by name ${page}`)).join()).toBe(expected)
    const [limit = 0, offset = 0] = page.match(/\d/g)!.map(Number)
    expect((await db.query('select name from shops order by name limit ? offset ?', [limit, offset])).join()).toBe(
      expected,
    )
  })

  test('nothing is in an empty list, and everything is not', async () => {
    expect(await db.$count(shops, inArray(shops.name, []))).toBe(0)
    expect(await db.$count(shops, notInArray(shops.name, []))).toBe(3)
    expect(await db.$count(shops, inArray(shops.name, ['north', 'south', 'east']))).toBe(2)
    const none = db.select({ shop: books.shop }).from(books).where(eq(books.title, 'none'))
    expect(await db.$count(shops, inArray(shops.name, none))).toBe(0)
    expect(await db.$count(shops, notInArray(shops.name, none))).toBe(3)
  })

  test('what is in a list with a missing value, or not, is not known', async () => {
    const genres = db.select({ genre: books.genre }).from(books)
    expect(await db.$count(books, inArray(books.genre, genres))).toBe(1)
    expect(await db.$count(books, notInArray(books.title, genres))).toBe(0)
  })

  test('a statement takes 32,000 values', async () => {
    const list = range(32_000).map((n) => (n === 31_999 ? 'north' : `${n}`))
    expect(await db.$count(shops, inArray(shops.name, list))).toBe(1)
  })

  test('rows are compared by all of their columns', async () => {
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
  ])('select %s', async (asked, expected) => {
    expect(await db.query(`select ${asked}`)).toEqual([expected])
  })

  test('sums of whole numbers are exact up to 2^53 - 1', async () => {
    await write((tx) => tx.update(shops).set({ size: sql`9007199254740991 / 3` }))
    expect(await db.query('select sum(size) from shops')).toEqual([[2 ** 53 - 1 - ((2 ** 53 - 1) % 3)]])
  })

  test('several questions make one answer', async () => {
    const union = 'select name from shops where size < ? union all select title from books where sold = ? order by 1'
    expect(await db.query(union, [15, 7])).toEqual([['Walden'], ['north']])
    const parts = 'with big as (select name from shops where size > ?) select count(*) from big where name <> ?'
    expect(await db.query(parts, [15, 'west'])).toEqual([[1]])
  })

  test('a whole number is found by its text, too', async () => {
    expect(await db.query('select name from shops where size = ?', ['10'])).toEqual([['north']])
  })

  describe('refuses', () => {
    const insert = 'insert into shops (name, street, size) values (?, ?, ?)'
    test.each<[string, new (...args: never[]) => Error, string, unknown[]]>([
      ['a primary key that is taken', Conflict, insert, ['north', null, 1]],
      ['a unique value that is taken', Conflict, insert, ['east', 'west street', 1]],
      ['a change that makes two alike', Conflict, "update shops set street = 'one'", []],
      [
        'a key of two columns that is taken',
        Conflict,
        'insert into books (shop, title, sold) values (?, ?, 1)',
        ['north', 'Emma'],
      ],
      [
        'a unique pair that is taken',
        Conflict,
        "update books set genre = 'nature' where title = ? and shop = 'north'",
        ['Emma'],
      ],
      [
        'a reference to nothing',
        BrokenReference,
        'insert into books (shop, title, sold) values (?, ?, 1)',
        ['none', 'Emma'],
      ],
      [
        'a change to a reference to nothing',
        BrokenReference,
        "update books set shop = 'none' where title = ?",
        ['Walden'],
      ],
      [
        'another key for what is referred to',
        BrokenReference,
        "update shops set name = 'none' where name = ?",
        ['north'],
      ],
      ['a missing value', StorageFault, insert, ['east', null, null]],
      ['what a check forbids', StorageFault, insert, ['east', null, -1]],
      ['a text for a number', StorageFault, insert, ['east', null, 'one']],
      ['a fraction for a whole number', StorageFault, insert, ['east', null, 1.5]],
      ['a table that is not there', StorageFault, 'delete from nowhere', []],
      ['a column that is not there', StorageFault, 'update shops set nothing = ?', [1]],
      ['what is no SQL', StorageFault, 'sell books', []],
    ])('%s, and says of which class it is', async (_, kind, statement, params) => {
      const before = await db.query('select * from shops order by name')
      const refused = await write((tx) => tx.query(statement, params)).catch((error) => error)
      expect(refused.constructor).toBe(kind)
      expect(refused).toHaveProperty('cause.message')
      const among = await write((tx) => tx.executeMany(statement, [params])).catch((error) => error)
      expect(among.constructor).toBe(kind)
      expect(await db.query('select * from shops order by name')).toEqual(before)
    })

    test('what is referred to with a cascade goes with what refers to it', async () => {
      await write((tx) => tx.delete(shops).where(and(eq(shops.name, 'north'))))
      expect(await db.select({ shop: books.shop }).from(books)).toEqual([{ shop: 'south' }])
    })
  })

  test('a question that is refused is the fault of who asked, and the next is answered', async () => {
    for (const [asked, params] of [
      ['select * from nowhere', []],
      ['select nothing from shops', []],
      ['no sql at all', []],
      ['select name from shops where size = ? and name = ?', [1]],
      ['select name from shops where size = ? and name = ?', [1, 'north', 'south']],
    ] as const) {
      const refused = await db.query(asked, [...params]).catch((error) => error)
      expect(refused.constructor, asked).toBe(StorageFault)
      expect(await db.query('select count(*) from shops')).toEqual([[3]])
    }
  })
})
