import { afterAll, afterEach, describe, expect, test } from 'bun:test'
import { queueMail } from '../../src/accounts/mail/mails'
import { config } from '../../src/config'
import { housekeepingTasks } from '../../src/jobs/housekeeping'
import { runDueJobs } from '../../src/jobs/runner'
import { withLease } from '../../src/jobs/with-lease'
import { toNextLevel } from '../../src/limits/quota-levels'
import { advanceClock, DAY, resetClock } from '../accounts/session-fixtures'
import { createAiFixture } from '../ai/fixtures'
import { startSmtpServer } from '../fakes/smtp-server'
import { createLambda, runOnce } from '../lambdas/fixtures'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { waitUntil } from '../wait-until'
import { callOperator, createQuotaFixture, setQuotas } from './quota-fixtures'

const EXCEEDED = [403, 'QUOTA_EXCEEDED']
const NO_QUOTAS = {
  ...{
    blueprints: 1_000,
    entities: null,
    users: null,
    storage: null,
    files: null,
    lambdaSeconds: null,
    aiTokens: null,
    mails: null,
  },
}

afterEach(resetClock)
afterAll(() => {
  config.ATOLL_OPERATOR_TOKEN = ''
})

describe('the routes of quotas', () => {
  test('the operator merges quotas, null removes one, and what was read can be sent back', async () => {
    const { id, admin } = await createQuotaFixture()
    const usage = {
      ...NO_QUOTAS,
      blueprints: 1,
      entities: 0,
      users: 4,
      files: 0,
      lambdaSeconds: 0,
      aiTokens: 0,
      mails: 0,
    }
    const expected = { ...NO_QUOTAS, usage: { ...usage, storage: expect.any(Number) } }
    expect((await callOperator('GET', `/tenants/${id}/quotas`)).body).toEqual(expected)
    expect(await setQuotas(id, { entities: 5, files: 7 })).toEqual({ ...expected, entities: 5, files: 7 })
    const changed = await setQuotas(id, { files: null, storage: 2 ** 40 })
    expect(changed).toEqual({ ...expected, entities: 5, storage: 2 ** 40 })
    expect(await setQuotas(id, changed)).toEqual(changed)
    expect((await admin.get('/quotas')).body).toEqual(changed)
    expect(changed.usage.storage).toBeGreaterThan(0)
    const { body: events } = await callOperator('GET', `/events?tenant=${id}&limit=1`)
    expect(events[0]).toMatchObject({ eventName: 'quotas-changed', metadata: { entities: 5, storage: 2 ** 40 } })
  })

  test('quotas keep the rate limits of a tenant, and the other way round', async () => {
    const { id } = await createQuotaFixture({ entities: 5 })
    await callOperator('PUT', `/tenants/${id}/limits`, { users: { reads: 9_000 } })
    await setQuotas(id, { users: 50 })
    expect((await callOperator('GET', `/tenants/${id}/limits`)).body.users).toEqual({ reads: 9_000 })
    expect((await callOperator('GET', `/tenants/${id}/quotas`)).body).toMatchObject({ entities: 5, users: 50 })
  })

  test.each([[{ entities: -1 }], [{ users: 1.5 }], [{ storage: '2G' }], [{ entites: 5 }], [{ mails: 2 ** 60 }]])(
    'the operator gets 400 for %j',
    async (quotas) => {
      const { id } = await createTestTenant()
      expect(statusAndCode(await callOperator('PUT', `/tenants/${id}/quotas`, quotas))).toEqual([400, 'INVALID_INPUT'])
    },
  )

  test('an unknown tenant is 404, and only admins of the tenant read its quotas', async () => {
    for (const method of ['GET', 'PUT'])
      expect(statusAndCode(await callOperator(method, '/tenants/nobody/quotas', {}))).toEqual([404, 'TENANT_NOT_FOUND'])
    const { user, anonymous } = await createQuotaFixture({ entities: 5 })
    expect((await user.get('/quotas')).status).toBe(403)
    expect((await anonymous.get('/quotas')).status).toBe(401)
    expect((await (await createTestTenant()).as('admin').get('/quotas')).body.entities).toBe(null)
  })
})

describe('the quota of entities', () => {
  test('an entity beyond the quota is 403 with what is used, and one fits again after another was deleted', async () => {
    const { create, user, path, usage } = await createQuotaFixture({ entities: 2 })
    for (const name of ['a', 'b']) expect((await create(name)).status).toBe(201)
    expect((await create('c')).body).toEqual({
      code: 'QUOTA_EXCEEDED',
      message:
        'The quota of this tenant is used up: 2 entities. Delete something, or ask the operator of this installation for more.',
      details: { quota: 'entities', limit: 2, used: 2 },
    })
    expect((await usage()).entities).toBe(2)
    expect((await user.put(`${path}/a`, { title: 'Changed' })).status).toBe(200)
    expect((await user.delete(`${path}/a`)).status).toBe(200)
    const created = await waitUntil(
      () => create('c'),
      ({ status }) => status === 201,
    )
    expect(created.status).toBe(201)
  })

  test('entities created at once never exceed the quota, and those that fail take nothing of it', async () => {
    const { create, usage } = await createQuotaFixture({ entities: 10 })
    const answers = await Promise.all(Array.from({ length: 25 }, (_, n) => create(`same-${n % 20}`)))
    const countOf = (status: number) => answers.filter((answer) => answer.status === status).length
    expect(countOf(201)).toBeLessThanOrEqual(10)
    expect(countOf(201) + countOf(403) + countOf(409)).toBe(25)
    for (let n = countOf(201); n < 10; n++)
      await waitUntil(
        () => create(`next-${n}`),
        ({ status }) => status === 201,
      )
    expect(statusAndCode(await create('last'))).toEqual(EXCEEDED)
    expect((await usage()).entities).toBe(10)
  })

  test('a batch that would exceed the quota is refused whole at its first operation beyond it', async () => {
    const { user, path, create } = await createQuotaFixture({ entities: 3 })
    await create('old')
    const creates = ['a', 'b', 'c'].map((identifier) => ({ op: 'create', identifier, data: {} }))
    const refused = await user.post(`${path}/batch`, { operations: creates })
    expect([...statusAndCode(refused), refused.body.details.index]).toEqual([...EXCEEDED, 2])
    const replaced = await user.post(`${path}/batch`, { operations: [{ op: 'delete', identifier: 'old' }, ...creates] })
    expect(replaced.status).toBe(200)
    const upserts = ['a', 'b', 'c'].map((identifier) => ({ op: 'upsert', identifier, data: { title: 'Again' } }))
    expect((await user.post(`${path}/batch`, { operations: upserts })).status).toBe(200)
    const another = { operations: [...upserts, { op: 'upsert', identifier: 'd', data: {} }] }
    expect(statusAndCode(await user.post(`${path}/batch`, another))).toEqual(EXCEEDED)
  })

  test('an import stops at the line that exceeds the quota, also when it is only tried', async () => {
    const { importLines, usage, create, user, path } = await createQuotaFixture({ entities: 500 })
    await create('first')
    const lines = Array.from({ length: 1_200 }, (_, n) => ({ identifier: `line-${n}`, title: 'Imported' }))
    const tried = await importLines(lines, '&dryRun=true')
    const { body } = await importLines(lines)
    for (const report of [tried.body, body]) {
      expect([report.imported, report.failed]).toEqual([499, 701])
      expect(report.errors[0]).toMatchObject({ line: 500, code: 'QUOTA_EXCEEDED' })
      expect(report.errors[0].message).toMatch(/500 entities.*The import ends here\.$/)
      expect(report.errors.length).toBe(1)
    }
    await waitUntil(usage, ({ entities }) => entities === 500)
    expect((await importLines(lines.slice(0, 499), '&mode=upsert')).body).toMatchObject({ imported: 499, failed: 0 })
    expect((await user.delete(`${path}/all?confirm=tasks`)).status).toBe(200)
    const whole = await waitUntil(
      () => importLines(lines, '&atomic=true'),
      ({ body }) => body.errors[0].line === 501,
    )
    expect([whole.body.imported, whole.body.failed]).toEqual([0, 700])
    await waitUntil(usage, ({ entities }) => entities === 0)
  })

  test('entities of an import that was undone do not count for the next one', async () => {
    const { importLines } = await createQuotaFixture({ entities: 1_000 })
    const toLines = (count: number, round: number) =>
      Array.from({ length: count }, (_, n) => ({ identifier: `r${round}-${n}`, title: 'Imported' }))
    for (let round = 0; round < 5; round++) {
      const lines: object[] = [...toLines(900, round), { identifier: `r${round}-0`, title: 1, unknown: true }]
      const { body } = await importLines(lines, '&atomic=true')
      expect([body.imported, body.errors[0].line]).toEqual([0, 901])
      expect(body.errors[0].code).not.toBe('QUOTA_EXCEEDED')
    }
    expect((await importLines(toLines(1_000, 9))).body).toMatchObject({ imported: 1_000, failed: 0 })
  })

  test('entities that another server adds count within seconds', async () => {
    const { create, tenant } = await createQuotaFixture({ entities: 3 })
    expect((await create('here')).status).toBe(201)
    const insert = `insert into entities (_id, blueprint, identifier, shown, keys, version, created, updated)
      values (?, (select code from blueprints where key = 'tasks'), ?, '', '{}', 1, 0, 0)`
    await tenant.write((tx) =>
      tx.executeMany(
        insert,
        [...'ab'].map((name) => [Bun.randomUUIDv7(), name]),
      ),
    )
    await waitUntil(
      () => create(),
      (answer) => Bun.deepEquals(statusAndCode(answer), EXCEEDED),
    )
  })

  test('another tenant has a quota of its own', async () => {
    const one = await createQuotaFixture({ entities: 0 })
    const other = await createQuotaFixture({ entities: 1 })
    expect(statusAndCode(await one.create())).toEqual(EXCEEDED)
    expect((await other.create()).status).toBe(201)
  })
})

describe('the quota of blueprints', () => {
  test('a tenant may have 1,000 blueprints unless the operator sets another number, and more get 403 QUOTA_EXCEEDED', async () => {
    const { id, admin, tenant, usage } = await createQuotaFixture()
    const create = (key: string) => admin.post('/blueprints', { key, name: key, fields: [] })
    await tenant.write(async (tx) => {
      const insert = `insert into blueprints (_id, key, name, description, definition, version, form, indexing, code, created, updated)
        values (?, ?, 'Made', '', '{"fields":[]}', 1, 0, 0, ?, 0, 0)`
      const { blueprints } = await usage()
      const rows = Array.from({ length: 1_000 - blueprints - 1 }, (_, n) => [Bun.randomUUIDv7(), `made${n}`, `m${n}`])
      await tx.executeMany(insert, rows)
    })
    await waitUntil(usage, ({ blueprints }) => blueprints === 999)
    expect((await create('last')).status).toBe(201)
    const refused = await create('excess')
    expect(statusAndCode(refused)).toEqual(EXCEEDED)
    expect(refused.body.details).toMatchObject({ quota: 'blueprints', limit: 1_000, used: 1_000 })
    await setQuotas(id, { blueprints: 1_001 })
    expect((await create('excess')).status).toBe(201)
    expect((await setQuotas(id, { blueprints: null })).blueprints).toBe(1_000)
    expect(statusAndCode(await create('more'))).toEqual(EXCEEDED)
  })
})

describe('the quota of users', () => {
  test('sign-ups and new users of admins are refused beyond it, and the operator does not count', async () => {
    const { id, admin, anonymous, usage } = await createQuotaFixture({ users: 5 })
    const signUp = (username: string) => anonymous.post('/signup', { username, password: 'correct horse' })
    expect((await callOperator('POST', `/tenants/${id}/support`, { reason: 'A test' })).status).toBe(200)
    expect((await signUp('ada')).status).toBe(201)
    expect(statusAndCode(await signUp('grace'))).toEqual(EXCEEDED)
    expect(statusAndCode(await admin.post('/users', { username: 'grace' }))).toEqual(EXCEEDED)
    expect((await usage()).users).toBe(5)
    expect((await anonymous.post('/signin', { username: 'ada', password: 'correct horse' })).status).toBe(200)
    await setQuotas(id, { users: 6 })
    expect((await admin.post('/users', { username: 'grace' })).status).toBe(201)
  })
})

test('beyond the quota of storage everything can be read and deleted, but nothing be added', async () => {
  const { id, user, admin, create, path, importLines } = await createQuotaFixture()
  await create('kept')
  const block = (await admin.post('/blocks', { name: 'hello', content: 'Hello' })).body
  await setQuotas(id, { storage: 1_000 })
  const event = { kind: 'order', eventName: 'paid' }
  const refused = await Promise.all([
    create('more'),
    user.put(`${path}/kept`, { title: 'More' }),
    user.post(`${path}/batch`, { operations: [{ op: 'create', data: {} }] }),
    admin.post('/blocks', { name: 'more', content: 'Hello' }),
    admin.put(`/blocks/${block._id}`, { content: 'More' }),
    admin.post('/lambdas', { name: 'more', code: 'export default () => 1' }),
    admin.post('/events', event),
  ])
  expect(refused.map(statusAndCode)).toEqual(refused.map(() => EXCEEDED))
  expect(refused[0]!.body.message).toMatch(/^The quota of this tenant is used up: 1,000 bytes of storage\. Delete/)
  const { body: report } = await importLines([{ title: 'One' }, { title: 'Two' }])
  expect(report).toMatchObject({ imported: 0, failed: 2, errors: [{ line: 1, code: 'QUOTA_EXCEEDED' }] })
  expect((await user.get(`${path}/kept`)).status).toBe(200)
  expect((await admin.put('/configurations/app-configuration', { name: 'Shop' })).status).toBe(200)
  expect((await admin.delete(`/blocks/${block._id}`)).status).toBe(200)
  const operations = [{ op: 'delete', identifier: 'kept' }]
  expect((await user.post(`${path}/batch`, { operations })).status).toBe(200)
  await setQuotas(id, { storage: null })
  expect((await create('more')).status).toBe(201)
})

const randomText = (length: number) => Buffer.from(crypto.getRandomValues(new Uint8Array(length))).toString('hex')

test('deleting entities frees storage', async () => {
  const { importLines, usage, user, path } = await createQuotaFixture()
  const { storage: before } = await usage()
  await importLines(Array.from({ length: 200 }, () => ({ title: randomText(2_000) })))
  const { storage: full } = await waitUntil(usage, ({ storage }) => storage > before + 200_000)
  await user.delete(`${path}/all?confirm=tasks`)
  await waitUntil(usage, ({ storage }) => storage < full - 150_000)
})

describe('the quota of seconds of lambdas', () => {
  test('a lambda does not run any more today when it is used up, and runs again tomorrow', async () => {
    const { id, admin, usage } = await createQuotaFixture({ lambdaSeconds: 1 })
    const path = await createLambda(admin, '() => { const end = Date.now() + 1_100; while (Date.now() < end); }')
    expect((await admin.post(`${path}/execute`, {})).status).toBe(200)
    const refused = await admin.post(`${path}/execute`, {})
    expect(statusAndCode(refused)).toEqual(EXCEEDED)
    expect(refused.body.message).toMatch(/: 1 second of lambdas a day\. Try again when the next day begins \(UTC\), or/)
    await waitUntil(async () => (await admin.get(`${path}/logs`)).body.length)
    expect((await usage()).lambdaSeconds).toBeGreaterThanOrEqual(1.1)
    advanceClock(DAY)
    expect((await usage()).lambdaSeconds).toBe(0)
    expect(await runOnce(admin, '() => 5')).toBe(5)
    await setQuotas(id, { lambdaSeconds: null })
  })

  test('a run in the background is given up with that reason, and is neither repeated nor told by an event', async () => {
    const { admin, tenant } = await createQuotaFixture({ lambdaSeconds: 0 })
    const path = await createLambda(admin, '() => 1')
    const target = { kind: 'lambda', lambdaId: path.split('/').at(-1) }
    const trigger = { kind: 'event', source: 'shop' }
    const { body: integration } = await admin.post('/integrations', { trigger, target })
    await admin.post('/events', { source: 'shop', kind: 'order', eventName: 'paid' })
    await runDueJobs(tenant)
    const { body: runs } = await admin.get(`/integrations/${integration._id}/runs`)
    expect(runs).toMatchObject([{ attempts: 1, outcome: { code: 'QUOTA_EXCEEDED' } }])
    expect((await admin.get('/events?eventName=lambda-failed')).body).toEqual([])
  })
})

test('an agent does not answer any more this month when the quota of tokens is used up', async () => {
  const { id, chat, admin, openai, user, main } = await createAiFixture()
  await setQuotas(id, { aiTokens: 18 })
  const answers = await Promise.all([chat(), chat()])
  expect(answers.map(statusAndCode).sort()).toEqual([
    [200, undefined],
    [429, 'BUDGET_EXCEEDED'],
  ])
  const refused = await chat()
  expect(statusAndCode(refused)).toEqual(EXCEEDED)
  expect(refused.body.details).toEqual({ quota: 'aiTokens', limit: 18, used: 18, period: expect.any(String) })
  expect((await admin.get('/quotas')).body.usage.aiTokens).toBe(18)
  advanceClock(32 * DAY)
  expect((await chat(user, main)).status).toBe(200)
  await openai.stop()
})

test('mails beyond the quota of the day are not sent, which the outbox and those who wait are told, but warnings are', async () => {
  const server = await startSmtpServer()
  config.ATOLL_SMTP_URL = server.url
  try {
    const { admin, as, anonymous, tenant, usage } = await createQuotaFixture({ mails: 1 })
    const ask = () => as('user').post('/email/verification')
    expect((await ask()).status).toBe(200)
    expect((await ask()).status).toBe(200)
    await runDueJobs(tenant)
    expect(server.letters.length).toBe(1)
    expect((await admin.get('/mails?state=sent')).body.length).toBe(1)
    const { body: failed } = await admin.get('/mails?state=failed')
    expect(failed.length).toBe(1)
    expect(failed[0].error).toMatch(/^The quota of this tenant is used up: 1 mail a day\./)
    expect((await usage()).mails).toBe(1)
    const answers = await Promise.all([
      ask(),
      anonymous.post('/password/forgot', { email: 'nobody@example.com' }),
      admin.post('/mails/templates/newDevice/test'),
    ])
    expect(answers.map(statusAndCode)).toEqual(answers.map(() => EXCEEDED))
    const warning = { to: 'ada@example.com', template: 'newDevice' } as const
    await tenant.write((tx) => queueMail(tenant, tx, warning))
    await runDueJobs(tenant)
    expect(server.letters.map(({ to }) => to).at(-1)).toEqual([warning.to])
    advanceClock(DAY)
    expect((await ask()).status).toBe(200)
    await runDueJobs(tenant)
    expect(server.letters.length).toBe(3)
  } finally {
    config.ATOLL_SMTP_URL = ''
    await server.close()
  }
})

describe('the events of quotas', () => {
  test('80 % and 100 % are told once to the tenant and to the operator, and again only after use has fallen', async () => {
    const { id, create, listEvents, user, path, tenant } = await createQuotaFixture({ entities: 10 })
    for (let n = 0; n < 7; n++) await create(`${n}`)
    expect(await listEvents()).toEqual([])
    await create('7')
    await waitUntil(listEvents, (events) => events.length === 1)
    for (const name of ['8', '9', '10', '11']) await create(name)
    const told = [
      ['quota-warning', 'entities', 8],
      ['quota-reached', 'entities', 10],
    ]
    expect(await waitUntil(listEvents, (events) => events.length > 1)).toEqual(told)
    for (const name of ['8', '9']) await user.delete(`${path}/${name}`)
    await waitUntil(
      () => create('8'),
      ({ status }) => status === 201,
    )
    expect(await listEvents()).toEqual(told)
    expect((await user.delete(`${path}/all?confirm=tasks`)).status).toBe(200)
    const checkQuotas = housekeepingTasks().get('quotas')!
    const isForgotten = async () => !(await tenant.db.query('select 1 from quota_levels where level > 0')).length
    await waitUntil(async () => {
      await withLease(tenant, 'housekeeping of a test', checkQuotas)
      return isForgotten()
    })
    for (let n = 0; n < 8; n++) await create(`again-${n}`)
    expect(await waitUntil(listEvents, (events) => events.length > 2)).toEqual([...told, told[0]])
    // The operator is told after the tenant.
    const listOperatorEvents = async () => (await callOperator('GET', `/events?tenant=${id}`)).body
    const ofOperator = await waitUntil(listOperatorEvents, (events) => events.length >= 5)
    expect(ofOperator.map(({ eventName }: { eventName: string }) => eventName)).toEqual([
      ...['quota-warning', 'quota-reached', 'quota-warning', 'quotas-changed', 'tenant-created'],
    ])
    expect(ofOperator[0].metadata).toEqual({ quota: 'entities', limit: 10, used: 8 })
  })

  test.each([
    [0, 79, 0],
    [0, 80, 80],
    [0, 100, 100],
    [80, 79, 80],
    [80, 70, 80],
    [80, 69, 0],
    [100, 95, 100],
    [100, 90, 100],
    [100, 89, 80],
    [100, 50, 0],
    [80, 150, 100],
  ] as const)('after %d % was told, %d % makes it %d %', (before, used, next) => {
    expect(toNextLevel(before, used, 100)).toBe(next)
  })
})
