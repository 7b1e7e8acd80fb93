// engine: sqlite
import { afterAll, describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import fc from 'fast-check'
import { getLoadablePath } from 'sqlite-vec'
import { tenantMigrations } from '../../../migrations'
import { toVectorBytes } from '../../../src/ai/knowledge/embeddings'
import { vectorStores } from '../../../src/ai/knowledge/tables'
import { searchInJavascript } from '../../../src/ai/knowledge/vectors/javascript'
import { searchWithSqliteVec } from '../../../src/ai/knowledge/vectors/sqlite-vec'
import { findNearest } from '../../../src/ai/knowledge/vectors/vector-search'
import { ConfigError } from '../../../src/core/config-error'
import { DatabasePool } from '../../../src/storage/pool'
import type { Engine } from '../../../src/storage/port'
import { checkProperty } from '../../property-runner'
import { errorOf } from '../../rejections'
import { fileEngines } from '../../storage/engines'

const cleanups: (() => Promise<void>)[] = []
afterAll(async () => {
  for (const close of cleanups) await close()
})

const extensionPath = getLoadablePath()

/** Creates a database of this engine, with a shortcut for vector stores. */
async function createVectorFixture(engine: Engine) {
  const storage = new DatabasePool(engine, { openCount: 10, deadline: 2_000 })
  cleanups.push(() => storage.close())
  const { db, write } = storage.getStore({ tenant: 'vectors', file: 'vectors.db' }, tenantMigrations)
  let numbers = 0
  /** Creates a store of files with these vectors, and returns its row and its vectors by chunk number. */
  const store = async (files: Float32Array[][], ready = true) => {
    const _id = Bun.randomUUIDv7()
    const vectorsByNumber = new Map<number, Float32Array>()
    const dimension = files.flat()[0]?.length ?? 1
    await write(async (tx) => {
      await tx
        .insert(vectorStores)
        .values({
          ...{ seq: ++numbers, _id, source: 's', integration: 'i', scope: 'user', subject: _id, model: 'm', dimension },
          ...{ version: 1, chunks: files.flat().length, created: '2026-01-01T00:00:00.000Z' },
        })
      for (const [n, file] of files.entries()) {
        await tx.query(
          'insert into knowledge_files (_id, store, name, metadata, user, chunks, ready, created) values (?, ?, ?, ?, ?, ?, ?, ?)',
          [`${_id} ${n}`, _id, 'f', '{}', 'u', file.length, ready ? 1 : 0, 0],
        )
        const rows = file.map((vector, position) => {
          vectorsByNumber.set(++numbers, vector)
          return [numbers, `${_id} ${n}`, position, 'text', toVectorBytes(vector)]
        })
        await tx.executeMany(
          'insert into knowledge_chunks (number, file, position, text, vector) values (?, ?, ?, ?, ?)',
          rows,
        )
      }
    })
    const [row] = await db.select().from(vectorStores).where(eq(vectorStores._id, _id))
    return { row: row!, known: vectorsByNumber }
  }
  return { db, store }
}

const toUnitVector = (values: number[]) => {
  const length = Math.hypot(...values) || 1
  return Float32Array.from(values, (value) => value / length)
}
const cosine = (one: Float32Array, other: Float32Array) => one.reduce((sum, value, n) => sum + value * other[n]!, 0)

describe.each(fileEngines)('vectors in %s', (_, engine) => {
  test('vector search with the sqlite-vec extension returns results as exact as the search in JavaScript', async () => {
    const { db, store } = await createVectorFixture(engine({ vectorExtension: extensionPath }))
    expect(db.vectorSearch).toBe('sqlite-vec')
    const vector = (dimension: number) =>
      fc
        .array(fc.integer({ min: -9, max: 9 }), { minLength: dimension, maxLength: dimension })
        .filter((values) => values.some(Boolean))
        .map(toUnitVector)
    const searchArbitrary = fc.integer({ min: 1, max: 24 }).chain((dimension) => {
      const files = fc.array(fc.array(vector(dimension), { maxLength: 12 }), { maxLength: 4 })
      return fc.record({ one: files, other: files, wanted: vector(dimension), most: fc.integer({ min: 1, max: 20 }) })
    })
    await checkProperty(
      30,
      fc.asyncProperty(searchArbitrary, async ({ one, other, wanted, most }) => {
        const [first, second, hidden] = [await store(one), await store(other), await store(one, false)]
        const stores = [first.row, second.row, hidden.row]
        const known = new Map([...first.known, ...second.known])
        const scores = (numbers: number[]) => numbers.map((number) => cosine(known.get(number)!, wanted))
        const best = scores([...known.keys()])
          .sort((a, b) => b - a)
          .slice(0, most)
        for (const search of [searchInJavascript, searchWithSqliteVec, findNearest]) {
          const found = await search(db, stores, wanted, most)
          expect(new Set(found).size).toBe(best.length)
          for (const [n, score] of scores(found).entries()) expect(score).toBeCloseTo(best[n]!, 5)
        }
      }),
    )
  })

  test('vector search compares the vectors of many files without blocking the event loop', async () => {
    const { db, store } = await createVectorFixture(engine({ vectorExtension: extensionPath }))
    const makeVectors = (n: number) => Array.from({ length: n }, (_, i) => toUnitVector([1, i / 10_000, 0, 1]))
    const needle = toUnitVector([0, 0, 1, 0])
    const { row, known } = await store([makeVectors(1_200), [needle], makeVectors(700)])
    let turns = 0
    const counting = setInterval(() => turns++)
    const [found] = await findNearest(db, [row], needle, 1)
    clearInterval(counting)
    expect(known.get(found!)).toBe(needle)
    expect(turns).toBeGreaterThan(0)
  })

  test('vector search runs in JavaScript without an extension, and an invalid extension path throws a ConfigError that names it', async () => {
    const { db } = await createVectorFixture(engine())
    expect(db.vectorSearch).toBe('javascript')
    expect((await errorOf(db.query('select vec_version()'))).message).toContain('rejected a statement')
    const broken = await createVectorFixture(engine({ vectorExtension: '/nowhere/vec0.so' }))
    const refused = broken.db.query('select 1')
    expect(await errorOf(refused)).toBeInstanceOf(ConfigError)
    expect((await errorOf(refused)).message).toContain('extension /nowhere/vec0.so of ATOLL_SQLITE_VEC')
  })
})
