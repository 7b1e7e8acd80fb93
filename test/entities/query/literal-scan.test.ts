import { expect, test } from 'bun:test'
import { withLease } from '../../../src/jobs/with-lease'
import { type SeededRandom, seededRandom } from '../../blueprints/seeded-random'
import { createThingsFixture, identifiers, importThings, nextPagePath } from '../fixtures'
import { withThresholds } from './small-thresholds'

const fields = [
  { key: 'title', type: 'string' },
  { key: 'notes', type: 'text' },
  { key: 'price', type: 'integer' },
]
const PLAIN_WORDS = ['Needle', 'needle 7', 'NEEDLE', 'x"y', 'back\\slash', 'a\nb']
const WORDS = [...PLAIN_WORDS, 'É', 'é 7', '７', 'ſ', 'K']
const FILLER = ['hay', 'straw', '7', '77', 'a', 'Hay', '']

/** Mostly texts without what is asked for; some are longer than their index keys. */
function makeThing({ pick, below }: SeededRandom, n: number) {
  const makeText = (words: string[]) =>
    [
      pick(FILLER),
      pick(below(12) ? FILLER : words),
      below(15) ? '' : '-'.repeat(300),
      below(30) ? '' : pick(words),
    ].join(' ')
  return {
    identifier: `thing${n}`,
    ...(below(9) ? { title: makeText(PLAIN_WORDS) } : {}),
    ...(below(9) ? { notes: makeText(WORDS) } : {}),
    price: below(5),
  }
}

const PATTERNS = [
  '%needle%',
  'needle%',
  '%7',
  '%E%',
  '%é%',
  '%x"y%',
  '%\\\\slash%',
  '%a_b%',
  '%ſ%',
  '%k%',
  '%',
  '%--%',
  '%１%',
]

/** Returns whether a text is like a pattern, by the engine of regular expressions. */
function isLike(pattern: string, text: string | undefined) {
  const source = pattern.replace(/\\(.)|[.*+?^${}()|[\]\\/]|%|_/gsu, (part, escaped) =>
    part === '%' ? '.*' : part === '_' ? '.' : `\\${escaped ?? part}`,
  )
  const fold = (value: string) => [...value].map((letter) => letter.toUpperCase().toLowerCase()).join('')
  return text !== undefined && new RegExp(`^${fold(source)}$`, 'su').test(fold(text))
}

test.each(['usual', 'middle', 'small'] as const)(
  'lists and counts by patterns without an index are those of a plain comparison, with %s thresholds',
  async (size) => {
    const fixture = await createThingsFixture(fields)
    const { as, path, tenant } = fixture
    const random = seededRandom(5)
    const things = Array.from({ length: 400 }, (_, n) => makeThing(random, n))
    await importThings(fixture, things)
    // While another process seems to build the indexes, there are none.
    await withLease(tenant, 'indexing things', () =>
      withThresholds(size, async () => {
        for (const field of ['title', 'notes'] as const)
          for (const pattern of PATTERNS)
            for (const sort of ['-created', 'created', 'price,identifier']) {
              const query = `${field}[$like]=${encodeURIComponent(pattern)}&price[$lte]=3&$sort=${sort}&$count=true`
              const found: string[] = []
              let total: string | null = null
              for (let next: string | undefined = `${path}?${query}&$limit=40`; next; ) {
                const { status, body, headers } = await as('user').get(next)
                expect(status, next).toBe(200)
                found.push(...identifiers(body))
                total ??= headers.get('x-total-count')
                next = nextPagePath(headers)
              }
              const expected = things.filter((one) => one.price <= 3 && isLike(pattern, one[field]))
              expect(found.toSorted(), query).toEqual(expected.map(({ identifier }) => identifier).sort())
              expect(new Set(found).size, query).toBe(found.length)
              expect(Number(total), query).toBe(expected.length)
            }
      }),
    )
  },
  120_000,
)
