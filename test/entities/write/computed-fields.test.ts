import { describe, expect, test } from 'bun:test'
import { moveClock } from '../../../src/core/clock'
import { writeInvalidating } from '../../../src/tenancy/cache'
import { fullAccessRules, statusAndCode } from '../../test-tenant'
import { createThingsFixture } from '../fixtures'

const INVALID = [400, 'INVALID_INPUT']
const number = (key: string, more: object = {}) => ({ key, type: 'number', ...more })
const string = (key: string, more: object = {}) => ({ key, type: 'string', ...more })

const lineFields = [number('price'), number('count'), number('total')]
const orderFields = (more: object = {}) =>
  createThingsFixture(lineFields, fullAccessRules('tenant', 'user', 'plugin'), {
    computed: { total: 'price * count' },
    ...more,
  })

/** Returns the result of a formula for an entity, or the details of its rejection. */
async function createWithFormula(formula: string, body: object, field: object = {}, fields: object[] = []) {
  const result = { key: 'result', type: 'string', ...field }
  const sent = Object.keys(body).filter((key) => !fields.some((one) => (one as { key: string }).key === key))
  const sentFields = sent.map((key) => ({ key, type: 'object', ...kinds[typeof body[key as never]] }))
  const own = await createThingsFixture([...sentFields, ...fields, result], fullAccessRules('tenant', 'user'), {
    computed: { result: formula },
  })
  const { status, body: answer } = await own.as('user').post(own.path, body)
  return status === 201 ? answer.result : answer.details
}
const kinds: Record<string, object> = {
  string: { type: 'string' },
  number: { type: 'number' },
  boolean: { type: 'boolean' },
}

const UNUSABLE = 'The formula of "total" cannot be used:'

describe('computed fields', () => {
  test('a computed field is evaluated on create, and again on every update', async () => {
    const { as, path } = await orderFields()
    const { status, body } = await as('user').post(path, { price: 2.5, count: 4 })
    expect([status, body.total, body.metadata.total]).toEqual([201, 10, 10])
    const at = `${path}/${body._id}`
    expect((await as('user').put(at, { count: 6 })).body.total).toBe(15)
    expect((await as('user').patch(at, { price: 1 })).body.total).toBe(6)
    expect((await as('user').get(at)).body).toMatchObject({ price: 1, count: 6, total: 6 })
  })

  test('a computed field can be filtered and sorted by', async () => {
    const { as, path } = await orderFields()
    for (const count of [3, 1, 2]) await as('user').post(path, { price: 10, count })
    const totals = async (query: string) =>
      (await as('user').get(`${path}?${query}`)).body.map((one: { total: number }) => one.total)
    expect(await totals('$sort=-total')).toEqual([30, 20, 10])
    expect(await totals('total[$gt]=10&$sort=total')).toEqual([20, 30])
    const { body } = await as('user').get(`${path}?total=20`)
    await as('user').put(`${path}/${body[0]._id}`, { count: 7 })
    expect(await totals('total=20')).toEqual([])
    expect(await totals('total=70')).toEqual([70])
  })

  test('a computed field is absent while its formula has no result', async () => {
    const { as, path } = await orderFields()
    const { body } = await as('user').post(path, { price: 2 })
    expect(body).not.toHaveProperty('total')
    const at = `${path}/${body._id}`
    expect((await as('user').put(at, { count: 2 })).body.total).toBe(4)
    expect((await as('user').put(at, { price: null })).body).not.toHaveProperty('total')
    expect((await as('user').get(`${path}?total[$exists]=true`)).body).toEqual([])
  })

  test('a computed field ignores every value that a caller sends', async () => {
    const { as, path } = await orderFields()
    for (const sent of [
      { total: 99 },
      { metadata: { total: 99 } },
      { total: 1, metadata: { total: 2 } },
      { total: 'x' },
    ]) {
      const { status, body } = await as('user').post(path, { price: 2, count: 3, ...sent })
      expect([status, body.total, body.metadata.total]).toEqual([201, 6, 6])
      for (const change of [sent, { total: null }]) {
        const changed = await as('admin').put(`${path}/${body._id}`, change)
        expect([changed.status, changed.body.total]).toEqual([200, 6])
      }
    }
  })

  test('an entity with a computed field can be changed and sent back as it was read', async () => {
    const { as, path } = await orderFields()
    const { body } = await as('user').post(path, { price: 2, count: 3 })
    const at = `${path}/${body._id}`
    await as('other').put(at, { price: 5 })
    const back = await as('user').put(at, { ...body, count: 4 })
    expect([back.status, back.body.price, back.body.total]).toEqual([200, 2, 8])
  })

  test('a formula sees the fields, identifiers, owner and workspace of its own entity', async () => {
    const formula = '{"a": _id, "b": identifier, "c": user, "d": workspace, "e": $keys($)}'
    const own = await createThingsFixture(
      [string('name'), { key: 'seen', type: 'object' }],
      fullAccessRules('tenant', 'user'),
      { computed: { seen: formula } },
    )
    const { body } = await own.as('user').post(own.path, { identifier: 'one', name: 'x' })
    const keys = ['name', '_id', 'identifier', 'user', 'workspace']
    const seen = { a: body._id, b: 'one', c: own.users.user, d: null, e: keys }
    expect(body.seen).toEqual(seen)
    const given = await own.as('admin').put(`${own.path}/one`, { user: own.users.other, workspace: 'w' })
    expect(given.body.seen).toEqual({ ...seen, c: own.users.other, d: 'w' })
  })

  test('a formula sees the computed fields before it, in the order of the fields', async () => {
    const fields = [number('a'), number('b'), number('c'), number('d')]
    const own = await createThingsFixture(fields, fullAccessRules('tenant', 'user'), {
      computed: { d: 'c + 1', c: 'b * 2', b: 'a + ($exists(d) ? 1000 : 1)' },
    })
    const { body } = await own.as('user').post(own.path, { a: 1 })
    expect(body).toMatchObject({ a: 1, b: 2, c: 4, d: 5 })
    expect((await own.as('user').put(`${own.path}/${body._id}`, { a: 2 })).body).toMatchObject({ b: 3, c: 6, d: 7 })
  })

  test('a result must fit the type and the constraints of its field, or the write is rejected with the reason', async () => {
    const body = { n: 3, s: 'x', yes: true, list: { of: [1, 2] } }
    for (const [formula, field, value] of [
      ['n + 0.5', { type: 'number' }, 3.5],
      ['n', { type: 'integer' }, 3],
      ['$string(n / 4)', { type: 'decimal' }, '0.75'],
      ['yes', { type: 'boolean' }, true],
      ['"2026-01-" & $pad($string(n), -2, "0")', { type: 'date' }, '2026-01-03'],
      ['{"a": [n, {"b": s}]}', { type: 'object' }, { a: [3, { b: 'x' }] }],
      ['list.of', { type: 'integer', multi: true }, [1, 2]],
      ['list.of[0]', { type: 'integer', multi: true }, [1]],
      ['null', {}, undefined],
      ['nowhere', {}, undefined],
    ] as const)
      expect(await createWithFormula(formula, body, field), formula).toEqual(value as never)
    for (const [formula, field, flaw] of [
      ['n / 2', { type: 'integer' }, 'the result must be a whole number between ±(2^53 - 1)'],
      ['n', {}, 'the result must be text'],
      ['1 / 0', { type: 'number' }, 'the result must be a number'],
      ['n', { type: 'number', max: 2 }, 'the result must be at most 2'],
      ['s', { enum: ['a', 'b'] }, 'the result must be one of "a","b"'],
      ['s', { pattern: '^y' }, 'the result must match the pattern ^y'],
      ['list.of', { type: 'integer' }, 'the result must be a whole number between ±(2^53 - 1)'],
      ['nowhere', { required: true }, 'it has no value but is required'],
      ['$uppercase', { type: 'object' }, 'a function is not a value'],
      ['{"f": $uppercase}', { type: 'object' }, 'lists and objects can’t hold functions'],
      ['s + 1', { type: 'number' }, 'The left side of the "+" operator must evaluate to a number'],
      ['$number(s)', { type: 'number' }, 'the values do not fit the expression'],
      ['n > 2 ? $error("At most two, please") : n', { type: 'number' }, 'At most two, please'],
      ['$assert(n < 3, "Too many")', {}, 'Too many'],
    ] as const)
      expect(await createWithFormula(formula, body, field), formula).toEqual([
        { path: '/result', message: `result cannot be computed: ${flaw}.` },
      ])
  })

  test('a computed relation to an entity that the caller may not read gets 400 INVALID_INPUT', async () => {
    const own = await createThingsFixture(
      [string('near'), { key: 'to', type: 'relation', target: 'things' }],
      fullAccessRules('user', 'user'),
      { computed: { to: 'near' } },
    )
    await own.as('user').post(own.path, { identifier: 'mine' })
    await own.as('other').post(own.path, { identifier: 'theirs' })
    expect((await own.as('user').post(own.path, { near: 'mine' })).body.to).toBe('mine')
    for (const near of ['theirs', 'nothing'])
      expect(statusAndCode(await own.as('user').post(own.path, { near }))).toEqual(INVALID)
  })

  test('a computed field with unique rejects equal results with 409 UNIQUE_VIOLATION', async () => {
    const own = await createThingsFixture(
      [string('name'), string('slug', { unique: true })],
      fullAccessRules('tenant', 'user'),
      { computed: { slug: '$replace($lowercase(name), /[^a-z0-9]+/, "-")' } },
    )
    const user = own.as('user')
    expect((await user.post(own.path, { name: 'Ada Lovelace' })).body.slug).toBe('ada-lovelace')
    expect(statusAndCode(await user.post(own.path, { name: 'ADA  LOVELACE' }))).toEqual([409, 'UNIQUE_VIOLATION'])
    const { body } = await user.post(own.path, { name: 'Grace' })
    expect(statusAndCode(await user.put(`${own.path}/${body._id}`, { name: 'Ada/Lovelace' }))).toEqual([
      409,
      'UNIQUE_VIOLATION',
    ])
    expect((await user.get(`${own.path}/${body._id}`)).body).toMatchObject({ name: 'Grace', slug: 'grace' })
  })

  test('a hidden computed field and its inputs appear in no answer and in no error', async () => {
    const fields = [
      string('name'),
      number('cost', { readRoles: ['plugin'], writeRoles: ['plugin'], default: 7 }),
      number('margin', { readRoles: ['plugin'] }),
      number('price'),
    ]
    const own = await createThingsFixture(fields, fullAccessRules('tenant', 'user', 'plugin'), {
      computed: { margin: '$number(name) - cost', price: '$string(cost) + 1' },
    })
    const { status, body } = await own.as('user').post(own.path, { name: 'x' })
    expect([status, body.details]).toEqual([
      400,
      [
        { path: '', message: 'A property of this entity cannot be computed from the values sent.' },
        {
          path: '/price',
          message: 'price cannot be computed: The left side of the "+" operator must evaluate to a number.',
        },
      ],
    ])
    await own.as('admin').put('/blueprints/things', { computed: { margin: '$number(name) - cost' } })
    const made = await own.as('user').post(own.path, { name: '10' })
    expect([made.status, made.body.margin, made.body.cost]).toEqual([201, undefined, undefined])
    expect((await own.as('editor').get(`${own.path}/${made.body._id}`)).body.margin).toBe(3)
    expect(statusAndCode(await own.as('user').put(`${own.path}/${made.body._id}`, { margin: 1 }))[0]).toBe(200)
  })

  test('a formula uses the clock of the server', async () => {
    try {
      moveClock(Date.parse('2031-02-03T04:05:06Z'))
      expect(await createWithFormula('$now()', {})).toStartWith('2031-02-03T04:05:')
      expect(await createWithFormula('$now("[Y0001]/[M01]")', {})).toBe('2031/02')
      expect(await createWithFormula('$string($toMillis($now()) = $millis())', {})).toBe('true')
    } finally {
      moveClock()
    }
  })

  test('a new or changed formula applies to existing entities', async () => {
    const own = await orderFields({ computed: {} })
    const { body } = await own.as('user').post(own.path, { price: 2, count: 3, total: 1 })
    expect(body.total).toBe(1)
    await own.as('admin').put('/blueprints/things', { computed: { total: 'price * count' } })
    expect((await own.as('user').get(`${own.path}/${body._id}`)).body.total).toBe(6)
    expect((await own.as('user').get(`${own.path}?total=6`)).body).toHaveLength(1)
    await own.as('admin').put('/blueprints/things', { computed: { total: 'price + count' } })
    expect((await own.as('user').get(`${own.path}?total[$lt]=6`)).body).toMatchObject([{ total: 5 }])
  })

  test('an update of an entity with a computed field still checks access, If-Match and values', async () => {
    const { as, path } = await orderFields({ permissions: fullAccessRules('user', 'user') })
    const { body, headers } = await as('user').post(path, { price: 2, count: 3 })
    const at = `${path}/${body._id}`
    expect(statusAndCode(await as('other').put(at, { count: 1 }))).toEqual([404, 'ENTITY_NOT_FOUND'])
    expect(statusAndCode(await as('user').put(`${path}/none`, { count: 1 }))).toEqual([404, 'ENTITY_NOT_FOUND'])
    expect((await as('user').put(at, { count: 4 }, { 'if-match': headers.get('etag')! })).body.total).toBe(8)
    expect(statusAndCode(await as('user').put(at, { count: 5 }, { 'if-match': headers.get('etag')! }))).toEqual([
      412,
      'VERSION_MISMATCH',
    ])
    expect(statusAndCode(await as('user').put(at, { count: 'x' }))).toEqual(INVALID)
  })
})

describe('formulas', () => {
  test('a formula supports JSONata, with regular expressions of RE2', async () => {
    const body = {
      first: 'Ada',
      last: 'Lovelace',
      items: {
        of: [
          { p: 1, q: 2 },
          { p: 3, q: 4 },
        ],
      },
    }
    for (const [formula, value] of [
      ['first & " " & last', 'Ada Lovelace'],
      ['$string($sum(items.of.(p * q)))', '14'],
      ['$join(items.of[p > 1].$string(q), ",")', '4'],
      ['$join($map(items.of, function($one) { $string($one.p) }), "-")', '1-3'],
      ['first ~> $uppercase ~> $substring(0, 2)', 'AD'],
      ['$substring(?, 0, 1)(last)', 'L'],
      ['($twice := function($f, $x) { $f($f($x)) }; $twice($trim, "  a "))', 'a'],
      ['($fact := function($n) { $n < 2 ? 1 : $n * $fact($n - 1) }; $string($fact(10)))', '3628800'],
      ['$string(items.of{ $string(p): q })', '{"1":2,"3":4}'],
      ['$string($ ~> |items.of[0]|{"p": 9}| ~> function($x) { $x.items.of.p })', '[9,3]'],
      ['$string($sort([3, 1, 2]))', '[1,2,3]'],
      ['$string(items.of^(>p).q)', '[4,2]'],
      ['$replace("aaa", /^a/, "b")', 'baa'],
      ['$replace("John Smith", /(\\w+)\\s(\\w+)/, "$2, $1")', 'Smith, John'],
      ['$string($split("a1b22c", /[0-9]+/))', '["a","b","c"]'],
      ['$string($match("abcAB", /(a)b/i).groups)', '["a","A"]'],
      ['$string($contains(last, /LOVE/i))', 'true'],
      ['$formatNumber(1234.5, "#,##0.00")', '1,234.50'],
      ['$fromMillis(0, "[Y0001]-[M01]-[D01]")', '1970-01-01'],
      ['$string($toMillis("1970-01-01T00:00:01Z"))', '1000'],
      ['$string($distinct([1, 2, 1]))', '[1,2]'],
      ['$base64decode($base64encode("é" ~> $encodeUrl))', '%C3%A9'],
    ] as const)
      expect(await createWithFormula(formula, body), formula).toBe(value)
  })

  test('an invalid formula gets 400 INVALID_INPUT with its position when the blueprint is saved', async () => {
    const { as } = await orderFields()
    const save = (computed: object) => as('admin').put('/blueprints/things', { computed })
    for (const [formula, message] of [
      ['', `${UNUSABLE} it ends unexpectedly.`],
      ['price *', `${UNUSABLE} it ends unexpectedly (at character 7).`],
      ['price * )', `${UNUSABLE} a value is expected here (at character 9).`],
      ['"price', `${UNUSABLE} a string has no closing quote (at character 6).`],
      ['/(?=x)/', expect.stringContaining(UNUSABLE)],
      ['/(x)\\1/', expect.stringContaining(UNUSABLE)],
      ['/(/', expect.stringContaining(UNUSABLE)],
      ['/(a{1,30}){1,30}/', expect.stringContaining('too complex')],
      ['$eval("1")', `${UNUSABLE} $eval is not supported.`],
    ] as const) {
      const { status, body } = await save({ total: formula })
      expect([status, body.details], formula).toEqual([400, [{ path: '/computed/total', message }]])
    }
    for (const computed of [{ total: 'x'.repeat(501) }, { total: 1 }, { nothing: '1' }, { total: null }, { total: {} }])
      expect(statusAndCode(await save(computed))).toEqual(INVALID)
    expect((await save({ total: `1${' '.repeat(499)}` })).status).toBe(200)
    expect(
      statusAndCode(
        await as('admin').put('/blueprints/things', {
          fields: [...lineFields.slice(0, 2), number('total', { default: 1 })],
        }),
      ),
    ).toEqual(INVALID)
  })

  test('formulas are shown to editors, and not to users', async () => {
    const { as } = await orderFields()
    expect((await as('editor').get('/blueprints/things')).body.computed).toEqual({ total: 'price * count' })
    expect((await as('user').get('/blueprints/things')).body).not.toHaveProperty('computed')
  })
})

test('a stored formula that cannot be parsed rejects creates with 400 INVALID_INPUT, and can be replaced', async () => {
  const { tenant, as, path } = await orderFields()
  const bad = 'update blueprints set definition = replace(definition, ?, ?)'
  await writeInvalidating(tenant, 'blueprints', (tx) => tx.query(bad, ['price * count', 'price *']))
  expect(statusAndCode(await as('user').post(path, { price: 1 }))).toEqual(INVALID)
  expect((await as('user').get(path)).body).toEqual([])
  expect((await as('admin').put('/blueprints/things', { computed: { total: 'price' } })).status).toBe(200)
  expect((await as('user').post(path, { price: 1 })).body.total).toBe(1)
})

test('a computed field matches its inputs after 30 concurrent updates of one entity', async () => {
  const { as, path } = await orderFields()
  const { body } = await as('user').post(path, { price: 1, count: 1 })
  const at = `${path}/${body._id}`
  const changes = Array.from({ length: 30 }, (_, n) => as('user').put(at, n % 2 ? { price: n } : { count: n + 1 }))
  for (const { status, body } of await Promise.all(changes)) {
    expect(status).toBe(200)
    expect(body.total).toBe(body.price * body.count)
  }
  const last = (await as('user').get(at)).body
  expect(last.total).toBe(last.price * last.count)
  expect((await as('user').get(`${path}?total=${last.total}`)).body).toHaveLength(1)
})

test('a formula that changes during writes applies to all later writes', async () => {
  const { as, path } = await orderFields()
  const { body } = await as('user').post(path, { price: 1, count: 1 })
  const change = async (n: number) => {
    const answer = await as('user').put(`${path}/${body._id}`, { count: n })
    expect(answer.status).toBe(200)
    expect(answer.body.total).toBeOneOf([n, 100 + n])
  }
  await Promise.all([
    ...[2, 3, 4].map(change),
    as('admin').put('/blueprints/things', { computed: { total: 'price * count + 100' } }),
    ...[5, 6, 7].map(change),
  ])
  expect((await as('user').put(`${path}/${body._id}`, { count: 8 })).body.total).toBe(108)
})

test('a delete during an update of the same entity leaves no rows', async () => {
  const { as, path, rows } = await orderFields()
  const { body } = await as('user').post(path, { price: 1, count: 1 })
  const at = `${path}/${body._id}`
  const [deleted, changed] = await Promise.all([as('user').delete(at), as('user').put(at, { count: 2 })])
  expect(deleted.status).toBe(200)
  expect(changed.status).toBeOneOf([200, 404])
  expect([await rows('entities'), await rows('entity_index')]).toEqual([0, 0])
})
