import { expect, test } from 'bun:test'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { cpuMsSince } from './cpu-time'

const editor = (await createTestTenant()).as('editor')
let blueprintCount = 0
const create = (definition: object) =>
  editor.post('/blueprints', { key: `b${++blueprintCount}`, name: 'B', ...definition })

/** 500 fields, whose keys are as long as they may be and differ only at their ends. */
const fields = Array.from({ length: 500 }, (_, n) => ({ key: `${'a'.repeat(57)}${100_000 + n}`, type: 'string' }))
const unknownKey = (n: number) => `${'a'.repeat(54)}bcd${900_000 + n}`

/** Expects that a definition is refused with 100 problems, without much work for them. */
async function expectRefusedQuickly(definition: object) {
  const start = process.cpuUsage()
  const answer = await create(definition)
  expect([...statusAndCode(answer), answer.body.details.length]).toEqual([400, 'INVALID_INPUT', 100])
  expect(cpuMsSince(start)).toBeLessThan(5_000)
}

test('a blueprint whose limitations name 2,000 unknown fields is refused quickly', async () => {
  const properties = (rule: number) => Array.from({ length: 20 }, (_, n) => unknownKey(rule * 20 + n))
  const limitations = Array.from({ length: 100 }, (_, rule) => ({
    ...{ scope: 'user', value: 1, properties: properties(rule) },
  }))
  await expectRefusedQuickly({ fields, limitations })
})

test('a blueprint with formulas of 10,000 unknown fields is refused quickly', async () => {
  const formulas = Array.from({ length: 10_000 }, (_, n) => [unknownKey(n), '1'])
  await expectRefusedQuickly({ fields: fields.slice(0, 10), computed: Object.fromEntries(formulas) })
})

test('a blueprint whose patterns take long to compile is refused', async () => {
  const range = 'B-\u{1E942}'
  const costly = `(?i)[${range.repeat(100)}]`
  for (const definition of [
    { fields: fields.map((field) => ({ ...field, pattern: costly })) },
    { fields: fields.map((field) => ({ ...field, pattern: `(?i)[${'\\pL'.repeat(100)}]` })) },
    {
      fields: [
        ...[range.repeat(1_000), '\\x{41}-\\x{1E942}'.repeat(600)].map((ranges, n) => ({
          ...{ key: `o${n}`, type: 'object', schema: { properties: { a: { pattern: `(?i)[${ranges}]` } } } },
        })),
      ],
    },
    { fields, computed: Object.fromEntries(fields.map(({ key }) => [key, `$match("", /[${range.repeat(100)}]/i)`])) },
  ]) {
    const start = process.cpuUsage()
    const answer = await create(definition)
    expect([...statusAndCode(answer), answer.body.message]).toEqual([
      ...[400, 'INVALID_INPUT'],
      'All patterns together can have at most 500 Unicode classes and ranges.',
    ])
    expect(cpuMsSince(start)).toBeLessThan(2_000)
  }
  const names = fields.map((field) => ({ ...field, pattern: "^[\\p{L}' -]+$" }))
  expect((await create({ fields: names })).status).toBe(201)
})

test('other work gets its turn while the patterns and formulas of a blueprint are compiled', async () => {
  let turns = 0
  const timer = setInterval(() => turns++, 0)
  const patterned = fields.map((field) => ({ ...field, pattern: '^(\\w{1,20}-){1,9}\\w+$' }))
  const computed = Object.fromEntries(fields.map(({ key }) => [key, `$sum([${'(1+1)*2,'.repeat(30)}1])`]))
  expect((await create({ fields: patterned, computed })).status).toBe(201)
  clearInterval(timer)
  expect(turns).toBeGreaterThan(100)
})
