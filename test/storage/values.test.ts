import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { asc, between, desc, eq, gt, max, min, sql } from 'drizzle-orm'
import fc from 'fast-check'
import { DatabasePool } from '../../src/storage/pool'
import { compareBytes, compareValues } from '../blueprints/seeded-random'
import { anyNumber, anyText, checkProperty, PROPERTY_TIMEOUT_MS } from '../property-runner'
import { engines } from './engines'
import { freshLocation, insertThing, migrations, things } from './fixtures'

setDefaultTimeout(PROPERTY_TIMEOUT_MS)

const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { freq: 4 })

const anyThing = fc.record({
  count: fc.maxSafeInteger(),
  price: optional(anyNumber()),
  live: optional(fc.boolean()),
  // Texts in JSON follow the rules of all texts.
  doc: optional(fc.jsonValue({ stringUnit: 'binary' }).filter((doc) => !/\\u0000|__proto__/.test(JSON.stringify(doc)))),
  bytes: optional(fc.uint8Array().map((bytes) => Buffer.from(bytes))),
  made: optional(
    fc.date({ min: new Date(-6e13), max: new Date(2e14), noInvalidDate: true }).map((d) => d.toISOString()),
  ),
})
const someTexts = fc.uniqueArray(anyText(), { minLength: 1, maxLength: 30 })

/** The stored form of a thing: negative zero becomes zero. */
const toStoredThing = ({ price, doc, ...rest }: { price: number | null; doc: unknown }) => ({
  ...rest,
  price: price === null ? null : price + 0,
  doc: JSON.parse(JSON.stringify(doc)),
})

describe.each(engines)('%s: values', (_, engine) => {
  const storage = new DatabasePool(engine(), { openCount: 2, deadline: 10_000 })
  const { db, write } = storage.getStore(freshLocation(), migrations)
  afterAll(() => storage.close())

  test('every stored value is read back unchanged', () =>
    checkProperty(
      60,
      fc.asyncProperty(fc.dictionary(anyText(), anyThing, { noNullPrototype: true, maxKeys: 10 }), async (made) => {
        const all = Object.entries(made).map(([id, thing]) => ({ id, part: null, ...thing }))
        const expected = all.map(toStoredThing)
        const returned = await write(async (tx) => {
          await tx.delete(things)
          return Promise.all(all.map((thing) => tx.insert(things).values(thing).returning().get()))
        })
        expect<unknown[]>(returned).toEqual(expected)
        for (const [n, { id }] of all.entries())
          expect<unknown>(await db.select().from(things).where(eq(things.id, id)).get()).toEqual(expected[n])
        expect(await db.$count(things)).toBe(all.length)
      }),
    ))

  test('executeMany stores every row unchanged, whichever columns are equal in all rows', () =>
    checkProperty(
      60,
      fc.asyncProperty(
        fc.uniqueArray(anyText(), { maxLength: 40 }),
        fc.array(fc.tuple(fc.maxSafeInteger(), optional(anyNumber()), optional(fc.maxSafeInteger())), {
          minLength: 40,
        }),
        fc.subarray([0, 1, 2]),
        async (ids, values, differing) => {
          const rows = ids.map((id, n) => [id, ...values[differing.includes(0) ? n : 0]!] as [string, ...number[]])
          for (const row of rows) for (const at of [1, 2]) if (!differing.includes(at)) row[at + 1] = values[0]![at]!
          await write(async (tx) => {
            await tx.delete(things)
            await tx.executeMany('insert into things (id, count, price, made) values (?, ?, ?, ?)', rows)
          })
          const found = (await db.query('select id, count, price, made from things')) as typeof rows
          // Negative zero is stored as zero.
          const expected = rows.map(([id, count, price, made]) => [
            id,
            count! + 0,
            price == null ? null : price + 0,
            made,
          ])
          const byId = (one: unknown[], other: unknown[]) => (`${one[0]}` < `${other[0]}` ? -1 : 1)
          expect<unknown[]>(found.sort(byId)).toEqual(expected.sort(byId))
        },
      ),
    ))

  test('texts are compared byte by byte by order by, comparisons, min and max', () =>
    checkProperty(
      60,
      fc.asyncProperty(someTexts, async (texts) => {
        await write(async (tx) => {
          await tx.delete(things)
          for (const id of texts) await insertThing(tx, id)
        })
        const sorted = [...texts].sort(compareBytes)
        const pivot = texts[0]!
        const found = (order = asc(things.id)) => db.select({ id: things.id }).from(things).orderBy(order)
        const only = (rows: { id: string }[]) => rows.map(({ id }) => id)
        expect(only(await found())).toEqual(sorted)
        expect(only(await found(desc(things.id)))).toEqual([...sorted].reverse())
        const greater = db.select({ id: things.id }).from(things).where(gt(things.id, pivot)).orderBy(things.id)
        expect(only(await greater)).toEqual(sorted.slice(sorted.indexOf(pivot) + 1))
        expect(await db.select({ least: min(things.id), greatest: max(things.id) }).from(things)).toEqual([
          { least: sorted[0]!, greatest: sorted.at(-1)! },
        ])
      }),
    ))

  test('texts read from JSON by ->> are compared byte by byte', () =>
    checkProperty(
      60,
      fc.asyncProperty(someTexts, async (texts) => {
        await write(async (tx) => {
          await tx.delete(things)
          for (const [n, text] of texts.entries())
            await tx.insert(things).values({ id: `${n}`, count: 0, doc: { f1: text } })
        })
        const sorted = [...texts].sort(compareBytes)
        const flat = (rows: unknown[][]) => rows.map(([text]) => text)
        expect(flat(await db.query('select doc ->> ? from things order by doc ->> ?', ['f1', 'f1']))).toEqual(sorted)
        const atLeast = 'select doc ->> ? from things where doc ->> ? >= ? order by doc ->> ? desc'
        expect(flat(await db.query(atLeast, ['f1', 'f1', texts[0], 'f1']))).toEqual(
          sorted.slice(sorted.indexOf(texts[0]!)).reverse(),
        )
      }),
    ))

  test('integers and fractions are compared by their value', () =>
    checkProperty(
      60,
      fc.asyncProperty(
        fc.array(fc.record({ count: fc.maxSafeInteger(), price: anyNumber() }), { minLength: 1, maxLength: 30 }),
        async (numbers) => {
          await write(async (tx) => {
            await tx.delete(things)
            for (const [n, one] of numbers.entries()) await tx.insert(things).values({ id: `${n}`, ...one })
          })
          const [pivot] = numbers
          for (const name of ['count', 'price'] as const) {
            const sorted = numbers.map((one) => one[name] || 0).sort(compareValues)
            const column = things[name]
            const all = await db.select({ value: column }).from(things).orderBy(asc(column))
            expect(all.map(({ value }) => value)).toEqual(sorted)
            const [low, high] = [pivot![name], numbers.at(-1)![name]].sort(compareValues)
            expect(await db.$count(things, between(column, low!, high!))).toBe(
              sorted.filter((value) => value >= low! && value <= high!).length,
            )
            expect(await db.$count(things, eq(column, pivot![name]))).toBe(
              sorted.filter((value) => value === (pivot![name] || 0)).length,
            )
          }
        },
      ),
    ))

  test('null is sorted first or last as the order demands, and equals nothing', () =>
    checkProperty(
      40,
      fc.asyncProperty(fc.array(optional(fc.integer({ min: -3, max: 3 })), { maxLength: 20 }), async (prices) => {
        await write(async (tx) => {
          await tx.delete(things)
          for (const [n, price] of prices.entries()) await tx.insert(things).values({ id: `${n}`, count: 0, price })
        })
        const present = prices.filter((price) => price !== null).sort(compareValues)
        const missing = prices.filter((price) => price === null)
        for (const [order, expected] of [
          ['asc nulls last', [...present, ...missing]],
          ['desc nulls last', [...present.toReversed(), ...missing]],
          ['asc nulls first', [...missing, ...present]],
          ['desc nulls first', [...missing, ...present.toReversed()]],
        ] as const)
          expect((await db.query(`select price from things order by price ${order}`)).flat()).toEqual([...expected])
        expect(await db.$count(things, sql`price = null or price <> null`)).toBe(0)
        expect(await db.$count(things, sql`price is null`)).toBe(missing.length)
        expect(await db.$count(things, sql`price <> 1`)).toBe(present.filter((price) => price !== 1).length)
      }),
    ))

  test.each<[string, Partial<typeof things.$inferInsert>]>([
    ['an empty text', { id: '', part: '' }],
    ['an empty byte array', { bytes: Buffer.of() }],
    ['a text of five million characters', { doc: '😀ä'.repeat(2_500_000) }],
    ['a byte array of five million bytes', { bytes: Buffer.alloc(5_000_000, 'bytes') }],
    ['a byte order mark', { id: '\ufeffa' }],
  ])('%s is stored unchanged', async (_, values) => {
    const thing = {
      id: 'a',
      count: 0,
      part: null,
      price: null,
      live: null,
      doc: null,
      bytes: null,
      made: null,
      ...values,
    }
    await write(async (tx) => {
      await tx.delete(things)
      await tx.insert(things).values(thing)
    })
    expect<unknown>(await db.select().from(things).get()).toEqual(thing)
  })

  test('a lone surrogate is stored as U+FFFD', async () => {
    await write(async (tx) => {
      await tx.delete(things)
      await insertThing(tx, 'a\ud800b')
    })
    expect(await db.select({ id: things.id }).from(things)).toEqual([{ id: 'a\ufffdb' }])
  })
})
