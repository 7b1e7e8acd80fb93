import { expect, test } from 'bun:test'
import { getModel } from '../../../src/blueprints/blueprints'
import type { Model } from '../../../src/blueprints/model'
import { intersectPostings } from '../../../src/entities/query/postings'
import type { Db } from '../../../src/storage/port'
import { seededRandom } from '../../blueprints/seeded-random'
import { databaseUrl } from '../../storage/engines'
import { waitUntil } from '../../wait-until'
import { createThingsFixture, type Entity, identifiers, importThings, indexWords, nextPagePath } from '../fixtures'
import { withThresholds } from '../query/small-thresholds'

// PostgreSQL sorts the matches itself.
test.skipIf(!!databaseUrl)(
  'searches by lists of terms in memory find the latest matches, page by page, with filters and after each change',
  async () => {
    const own = await createThingsFixture([
      { key: 'title', type: 'string' },
      { key: 'notes', type: 'text' },
      { key: 'size', type: 'integer' },
    ])
    const { as, path, tenant } = own
    const { below, pick } = seededRandom(Number(process.env.TEST_SEED ?? Date.now() % 1e6))
    const WORDS = ['red', 'green', 'blue', 'grey']
    const texts = () => ({ title: `${pick(WORDS)} ${pick(WORDS)}`, notes: pick(WORDS), size: below(3) })
    await importThings(own, Array.from({ length: 400 }, texts))
    await indexWords(own)
    const user = as('user')
    const isKept = async (search: string) => {
      const model = await getModel(tenant, 'things')
      return (await intersectPostings({ ...tenant.db, origin: tenant.db }, model, search, { limit: 1 })) !== undefined
    }
    const readPages = async (query: string) => {
      const found: Entity[] = []
      for (let at: string | undefined = `${path}?${query}`; at; ) {
        const { status, body, headers } = await user.get(at)
        expect(status).toBe(200)
        found.push(...body)
        at = nextPagePath(headers)
      }
      return found
    }
    const hasAll = ({ metadata }: Entity, words: string[]) =>
      words.every((word) => `${metadata.title} ${metadata.notes}`.split(' ').includes(word))
    await withThresholds('small', async () => {
      for (let round = 0; round < 6; round++) {
        const all = (await user.get(`${path}?$limit=1000&$sort=-created`)).body as Entity[]
        const words = [pick(WORDS), pick(WORDS)]
        const size = below(3)
        for (const filter of ['', `&size=${size}`]) {
          const query = `$q=${words.join('+')}&$limit=${10 + below(20)}${filter}`
          const expected = all.filter((one) => hasAll(one, words) && (!filter || one.metadata.size === size))
          for (let times = 0; times < 4; times++)
            expect(new Set(identifiers(await readPages(query)))).toEqual(new Set(identifiers(expected)))
          const skipped = (await user.get(`${path}?${query}&$skip=7`)).body as Entity[]
          expect(identifiers(skipped)).toEqual(identifiers((await readPages(query)).slice(7, 7 + skipped.length)))
        }
        if (round === 0) await waitUntil(() => isKept('(f1wred OR f2wred)'))
        await Promise.all([
          user.post(path, texts()),
          user.patch(`${path}/${pick(all).identifier}`, texts()),
          user.delete(`${path}/${pick(all).identifier}`),
        ])
      }
    })
  },
)

/** Returns a database in which so many entities have each term, and the terms that were read from it, each as often as it was. */
function createTermsDb(entities: number) {
  const state = { changes: 1, read: [] as string[] }
  const query: Db['query'] = async (sql, [term, before, limit] = []) => {
    if (sql.includes('tracked_blueprints')) return [[1, state.changes]]
    state.read.push(term as string)
    const last = Math.min(entities, (before as number) - 1)
    return Array.from({ length: Math.min(limit as number, last) }, (_, n) => [last - n])
  }
  return { state, db: { query, yieldToOthers: () => Bun.sleep(0) } as unknown as Db }
}

const model = { _id: 'one', key: 'things', version: 1, form: 0 } as Model
const SEARCHES = 3 // that have a term read

test('the terms of searches are read one after the other', async () => {
  const { db, state } = createTermsDb(5_000)
  const search = (terms: string) => intersectPostings(db, model, terms, { limit: 2 })
  for (let n = 0; n < SEARCHES; n++) await search('a AND b AND c')
  await waitUntil(async () => await search('a AND b AND c'))
  expect(await search('a AND b AND c')).toEqual([5_000, 4_999])
  expect(state.read).toEqual(['a', 'b', 'c'].flatMap((term) => [term, term, term]))
})

test('terms are not read any more once an entity has changed', async () => {
  const { db, state } = createTermsDb(5_000)
  const search = (terms: string) => intersectPostings(db, model, terms, { limit: 2 })
  for (let n = 0; n < SEARCHES; n++) await search('a AND b AND c')
  state.changes++
  for (let n = 0; n < SEARCHES; n++) await search('d')
  await waitUntil(async () => await search('d'))
  expect(state.read.filter((term) => term !== 'd').length).toBeLessThan(3)
  expect(state.read.filter((term) => term === 'd')).toHaveLength(3)
})
