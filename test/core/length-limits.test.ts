// engine: sqlite
import { expect, test } from 'bun:test'
import { t } from 'elysia'
import { assertLengths } from '../../src/core/length-limits'
import { createTestTenant, statusAndCode } from '../test-tenant'

const firstErrorPath = (shape: Parameters<typeof assertLengths>[0], value: unknown) => {
  try {
    assertLengths(shape, value)
  } catch (error) {
    return (error as { more: { details: { path: string }[] } }).more.details[0]!.path
  }
}
const repeatItems = (count: number) => Array.from({ length: count }, () => 'a')
const createKeys = (count: number) => Object.fromEntries(repeatItems(count).map((_, n) => [`key${n}`, n]))

test('assertLengths refuses a list that is longer than its shape allows, at any depth', () => {
  const names = t.Array(t.String(), { maxItems: 3 })
  const shape = t.Object({
    names,
    inner: t.Optional(t.Nullable(t.Object({ names }))),
    all: t.Array(t.Object({ names })),
  })
  expect(
    firstErrorPath(shape, { names: repeatItems(3), inner: null, all: [{ names: repeatItems(3) }] }),
  ).toBeUndefined()
  expect(firstErrorPath(shape, { names: repeatItems(4) })).toBe('/names')
  expect(firstErrorPath(shape, { inner: { names: repeatItems(4) } })).toBe('/inner/names')
  expect(firstErrorPath(shape, { all: [{ names: [] }, { names: repeatItems(4) }] })).toBe('/all/1/names')
})

test('assertLengths refuses an object with more than 100 properties beyond those of its shape', () => {
  const shape = t.Object({ name: t.String() })
  expect(firstErrorPath(shape, createKeys(101))).toBeUndefined()
  expect(firstErrorPath(shape, createKeys(102))).toBe('')
  expect(firstErrorPath(t.Record(t.String(), t.Number()), createKeys(1_000))).toBeUndefined()
  expect(firstErrorPath(t.Record(t.String(), t.Number(), { maxProperties: 10 }), createKeys(11))).toBe('')
})

test('assertLengths leaves ambiguous unions and values of a wrong type to the validation of the shape', () => {
  const shape = t.Object({
    any: t.Unknown(),
    either: t.Union([t.Array(t.String(), { maxItems: 1 }), t.Object({ name: t.String() })]),
    text: t.Union([t.String(), t.Array(t.String(), { maxItems: 1 })]),
  })
  expect(firstErrorPath(shape, { any: repeatItems(1_000), either: repeatItems(2), text: 'a' })).toBeUndefined()
  expect(firstErrorPath(shape, { text: repeatItems(2) })).toBe('/text')
  for (const value of [null, 1, 'text', [], repeatItems(10)]) expect(firstErrorPath(shape, value)).toBeUndefined()
})

test('routes refuse long lists and wide objects with 400 INVALID_INPUT and the path of the value', async () => {
  const tenant = await createTestTenant()
  const admin = tenant.as('admin')
  const answers = [
    await admin.post('/workspaces', { name: 'one', labels: repeatItems(5_000) }),
    await admin.post('/components/bulk', { components: repeatItems(5_000) }),
    await tenant.anonymous.post('/signin', createKeys(5_000)),
  ]
  expect(answers.map(statusAndCode)).toEqual(Array(3).fill([400, 'INVALID_INPUT']))
  expect(answers.map(({ body }) => body.details[0].path)).toEqual(['/labels', '/components', ''])
  expect(answers.map(({ body }) => body.details.length)).toEqual([1, 1, 1])
})
