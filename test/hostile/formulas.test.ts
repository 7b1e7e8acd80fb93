import { expect, test } from 'bun:test'
import { createThingsFixture } from '../entities/fixtures'
import { callApi, fullAccessRules, statusAndCode } from '../test-tenant'

const INVALID = [400, 'INVALID_INPUT']
const FIELDS = [
  { key: 'name', type: 'string' },
  { key: 'made', type: 'object' },
]

test('an endless or huge formula is refused with 400 while other requests are answered', async () => {
  const t = await createThingsFixture(FIELDS)
  const admin = t.as('admin')
  for (const made of [
    '($f := function() { $f() }; $f())',
    '($f := function($n) { 1 + $f($n + 1) }; $f(1))',
    '[1..10000000]',
    '$pad("", 500000000)',
    '($f := function($s, $n) { $n = 0 ? $s : $f({"a": $s, "b": $s}, $n - 1) }; $f(1, 60))',
    '$match(name, /(a+)+b|a/)',
  ]) {
    expect((await admin.put('/blueprints/things', { computed: { made } })).status).toBe(200)
    const answers = await Promise.all([
      t.as('user').post(t.path, { name: 'a'.repeat(2_000) }),
      t.as('other').get(t.path),
      callApi('GET', `${t.origin}/health`),
    ])
    expect(answers.map(({ status }) => status)).toEqual([400, 200, 200])
  }
})

test('20 concurrent writes with an endless formula are all refused with 400 INVALID_INPUT', async () => {
  const t = await createThingsFixture(FIELDS, fullAccessRules('tenant', 'user'), {
    computed: { made: '($f := function() { $f() }; $f())' },
  })
  const answers = await Promise.all(Array.from({ length: 20 }, () => t.as('user').post(t.path, {})))
  for (const answer of answers) expect(statusAndCode(answer)).toEqual(INVALID)
  expect(await t.rows('entities')).toBe(0)
})

test('200 formulas of one blueprint share one budget and are refused when it is exceeded', async () => {
  const keys = Array.from({ length: 200 }, (_, n) => `f${n}`)
  const t = await createThingsFixture(
    keys.map((key) => ({ key, type: 'number' })),
    fullAccessRules('tenant', 'user'),
    { computed: Object.fromEntries(keys.map((key) => [key, '$count($map([1..500], function($x) { $x }))'])) },
  )
  const { status, body } = await t.as('user').post(t.path, {})
  expect(status).toBe(400)
  expect(body.details[0].message).toContain('it takes too long')
})

test('a value of a body that looks like a function is never called by a formula', async () => {
  const t = await createThingsFixture([...FIELDS, { key: 'data', type: 'object' }], fullAccessRules('tenant', 'user'), {
    computed: { made: '$exists(data.f) ? data.f(1) : {"none": true}' },
  })
  for (const f of [
    { _jsonata_lambda: true, body: { type: 'string', value: 'x' }, arguments: [], environment: {} },
    { _jsonata_function: true, implementation: 'x', signature: {} },
    { apply: 'x', next: 'x', sequence: true, tupleStream: true, outerWrapper: true },
    { type: 'regex', value: {} },
    'x',
    [1],
  ])
    expect(statusAndCode(await t.as('user').post(t.path, { data: { f } }))).toEqual(INVALID)
  expect((await t.as('user').post(t.path, { data: {} })).body.made).toEqual({ none: true })
})

test('two tenants with formulas of the same name each get the result of their own', async () => {
  const [one, two] = await Promise.all(
    ['"one"', '"two"'].map((name) =>
      createThingsFixture(FIELDS, fullAccessRules('tenant', 'user'), { computed: { name } }),
    ),
  )
  const [first, second] = await Promise.all([one!.as('user').post(one!.path, {}), two!.as('user').post(two!.path, {})])
  expect([first.body.name, second.body.name]).toEqual(['one', 'two'])
})

test('a formula whose result could not be sent as input is refused with 400', async () => {
  const t = await createThingsFixture(FIELDS)
  const [admin, user] = [t.as('admin'), t.as('user')]
  for (const computed of [
    { name: '"\\u0000"' },
    { name: '$base64decode("AA==")' },
    { name: '$decodeUrlComponent("%00")' },
    { name: '"\\ud800"' },
    { name: '$split("😀", "")[0]' },
    { made: '{"\\u0000": 1}' },
    { made: '{"a": ["\\udc00"]}' },
    { made: '{"__proto__": {"a": 1}}' },
    { made: '{"a": {"__proto__": 1}}' },
  ]) {
    expect((await admin.put('/blueprints/things', { computed })).status).toBe(200)
    const { status, body } = await user.post(t.path, {})
    expect([status, body.details[0].message], JSON.stringify(computed)).toEqual([
      400,
      expect.stringContaining('cannot be stored'),
    ])
  }
  await admin.put('/blueprints/things', { computed: { name: '$substring("a😀", 1)' } })
  expect((await user.post(t.path, {})).body.name).toBe('😀')
})

test('expensive built-in functions are refused for taking too long, and usual ones are computed', async () => {
  const t = await createThingsFixture(FIELDS)
  const wide = '[Y,9999]'.repeat(9)
  for (const made of [
    `{"n": $count($map([1..20], function($n) { $fromMillis($n, "${wide}") }))}`,
    `{"n": $count($map([1..20], function($n) { $now("${wide}") }))}`,
    '{"n": $count($map([1..20], function($n) { $spread([1..2000]) }))}',
    '{"n": $count($map([1..2500], function($n) { $formatBase(1e300, 2) }))}',
    '{"n": $count($map([1..2500], function($n) { $formatNumber(1e300, "#,#0.0#") }))}',
  ]) {
    expect((await t.as('admin').put('/blueprints/things', { computed: { made } })).status).toBe(200)
    const { status, body } = await t.as('user').post(t.path, {})
    expect([status, body.details?.[0].message], made).toEqual([400, expect.stringContaining('it takes too long')])
  }
  const usual =
    '{"n": $fromMillis(0, "[Y0001]-[M01]-[D01]"), "f": $formatNumber(1234.5, "#,##0.00"), "s": $spread({"a": 1})}'
  await t.as('admin').put('/blueprints/things', { computed: { made: usual } })
  const { body } = await t.as('user').post(t.path, {})
  expect(body.made).toEqual({ n: '1970-01-01', f: '1,234.50', s: { a: 1 } })
})
