import { expect, test } from 'bun:test'
import { t } from 'elysia'
import { assertLengths } from '../../src/core/lengths'
import { house, refusal } from '../house'

const flaw = (shape: Parameters<typeof assertLengths>[0], value: unknown) => {
  try {
    assertLengths(shape, value)
  } catch (error) {
    return (error as { more: { details: { path: string }[] } }).more.details[0]!.path
  }
}
const many = (count: number) => Array.from({ length: count }, () => 'a')
const keys = (count: number) => Object.fromEntries(many(count).map((_, n) => [`key${n}`, n]))

test('refuses a list that is longer than its shape allows, wherever it is', () => {
  const names = t.Array(t.String(), { maxItems: 3 })
  const shape = t.Object({
    names,
    inner: t.Optional(t.Nullable(t.Object({ names }))),
    all: t.Array(t.Object({ names })),
  })
  expect(flaw(shape, { names: many(3), inner: null, all: [{ names: many(3) }] })).toBeUndefined()
  expect(flaw(shape, { names: many(4) })).toBe('/names')
  expect(flaw(shape, { inner: { names: many(4) } })).toBe('/inner/names')
  expect(flaw(shape, { all: [{ names: [] }, { names: many(4) }] })).toBe('/all/1/names')
})

test('refuses an object with more than a hundred properties beside those of its shape', () => {
  const shape = t.Object({ name: t.String() })
  expect(flaw(shape, keys(101))).toBeUndefined()
  expect(flaw(shape, keys(102))).toBe('')
  expect(flaw(t.Record(t.String(), t.Number()), keys(1_000))).toBeUndefined()
  expect(flaw(t.Record(t.String(), t.Number(), { maxProperties: 10 }), keys(11))).toBe('')
})

test('leaves to the shape what may be one of several things, and what does not fit at all', () => {
  const shape = t.Object({
    any: t.Unknown(),
    either: t.Union([t.Array(t.String(), { maxItems: 1 }), t.Object({ name: t.String() })]),
    text: t.Union([t.String(), t.Array(t.String(), { maxItems: 1 })]),
  })
  expect(flaw(shape, { any: many(1_000), either: many(2), text: 'a' })).toBeUndefined()
  expect(flaw(shape, { text: many(2) })).toBe('/text')
  for (const value of [null, 1, 'text', [], many(10)]) expect(flaw(shape, value)).toBeUndefined()
})

test('routes refuse long lists and wide objects with 400, and say which', async () => {
  const home = await house()
  const admin = home.as('admin')
  const answers = [
    await admin.post('/workspaces', { name: 'one', labels: many(5_000) }),
    await admin.post('/components/bulk', { components: many(5_000) }),
    await home.stranger.post('/signin', keys(5_000)),
  ]
  expect(answers.map(refusal)).toEqual(Array(3).fill([400, 'INVALID_INPUT']))
  expect(answers.map(({ body }) => body.details[0].path)).toEqual(['/labels', '/components', ''])
  expect(answers.map(({ body }) => body.details.length)).toEqual([1, 1, 1])
})
