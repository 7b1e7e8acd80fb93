// engine: sqlite
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { textKey } from '../../../src/blueprints/fields/index-key-codec'
import type { Model } from '../../../src/blueprints/model'
import { MAX_TRACKED_CHANGES } from '../../../src/entities/changes/tracked-changes'
import { FieldTexts, getFieldTexts } from '../../../src/entities/query/field-texts'
import { matchesPattern, parsePattern } from '../../../src/entities/query/like-pattern'
import type { FieldTarget } from '../../../src/entities/query/sql-conditions'
import type { Db } from '../../../src/storage/port'

const letters = fc.constantFrom('a', 'B', 'b', 'ß', 'İ', 'ı', 'Σ', 'ς', '😀', '%', '_', '\\', '\n', ' ', 'é')
const word = fc.array(letters, { maxLength: 6 }).map((list) => list.join(''))

test('the candidates contain every text that matches a pattern, and each text at most once', () => {
  fc.assert(
    fc.property(fc.uniqueArray(word, { maxLength: 30 }), word, (all, text) => {
      const texts = new FieldTexts()
      texts.add(all.slice(0, 10))
      texts.add(all.slice(10))
      for (const pattern of [text, `%${text}%`, `%${text}`].map(parsePattern)) {
        const candidates = [...texts.findCandidates(pattern)]
        const matching = all.filter((one) => matchesPattern(pattern, one))
        expect(candidates).toEqual(expect.arrayContaining(matching))
        expect(new Set(candidates).size).toBe(candidates.length)
      }
    }),
    { numRuns: 500 },
  )
})

test('a pattern with a text leaves out those without it, but no text that the index has truncated', () => {
  const texts = new FieldTexts()
  const long = textKey('x'.repeat(1_000))
  texts.add(['Ada Rossi 12', 'Ada Meier 12', 'rossi', long])
  expect([...texts.findCandidates(parsePattern('%ROSSI%'))]).toEqual(['Ada Rossi 12', 'rossi', long])
  expect([...texts.findCandidates(parsePattern('%_%'))]).toHaveLength(4)
})

const model = { _id: 'one', key: 'things', version: 1, form: 0 } as Model
const target = (label: string) => ({ label }) as FieldTarget
/** A database without tracking, in a thread that knows this version. */
const createDb = (commitVersion?: () => number) =>
  ({ query: async () => [], ...(commitVersion && { commitVersion }) }) as unknown as Db

test('texts of a blueprint that is not tracked are kept until a commit, where commits are known', async () => {
  let [version, reads] = [1, 0]
  const db = createDb(() => version)
  const read = async function* () {
    reads++
    yield ['a', 'b']
  }
  const first = await getFieldTexts(db, model, target('f1'), read)
  expect(await getFieldTexts(db, model, target('f1'), read)).toBe(first!)
  expect(await getFieldTexts({ ...db, origin: db }, model, target('f1'), read)).toBe(first!)
  expect(reads).toBe(1)
  await getFieldTexts(db, model, target('f2'), read)
  await getFieldTexts(
    createDb(() => 1),
    model,
    target('f1'),
    read,
  )
  expect(reads).toBe(3)
  version++
  expect(await getFieldTexts(db, model, target('f1'), read)).not.toBe(first!)
  expect(await getFieldTexts(createDb(), model, target('f1'), read)).toBeUndefined()
})

test('more texts than a thread may keep are read once until a commit, and not kept', async () => {
  const db = createDb(() => 1)
  let reads = 0
  const read = async function* () {
    reads++
    for (let slice = 0; slice < 20; slice++)
      yield Array.from({ length: 4_000 }, (_, n) => `${slice} ${n} ${'x'.repeat(200)}`)
  }
  for (let attempt = 1; attempt <= 2; attempt++) {
    expect(await getFieldTexts(db, model, target('f1'), read)).toBeUndefined()
    expect(reads).toBe(1)
  }
})

test('more texts of a tracked blueprint than are kept are read once until very many entities have changed', async () => {
  let [last, reads] = [10, 0]
  const db = { query: async () => [[1, last]] } as unknown as Db
  const read = async function* () {
    reads++
    yield Array.from({ length: 30_000 }, (_, n) => `${n} ${'x'.repeat(200)}`)
  }
  const get = () => getFieldTexts(db, model, target('f1'), read)
  expect([await get(), await get(), reads]).toEqual([undefined, undefined, 1])
  last += MAX_TRACKED_CHANGES
  expect([await get(), reads]).toEqual([undefined, 1])
  last++
  expect([await get(), reads]).toEqual([undefined, 2])
})
