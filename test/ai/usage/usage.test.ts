import { afterAll, afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import fc from 'fast-check'
import { config } from '../../../src/config'
import { DAY_MS, moveClock, now, toIsoString } from '../../../src/core/clock'
import { logOutput } from '../../../src/core/log'
import { housekeepingTasks } from '../../../src/jobs/housekeeping'
import type { ReplyPlan } from '../../fakes/openai-server'
import { checkProperty } from '../../property-runner'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { chatMessage, createAiFixture, toolCalls } from '../fixtures'

const at = await createAiFixture()
const { user, admin, openai, main, anonymous, chat } = at
const originalTimeout = config.ATOLL_AI_TIMEOUT
afterAll(() => openai.stop())
beforeEach(() => openai.clear())
afterEach(() => {
  moveClock()
  config.ATOLL_AI_TIMEOUT = originalTimeout
})

const putSettings = (metadata: object) => admin.put('/configurations/ai-configuration', { metadata })
const changeSettings = (metadata: object) => at.done(putSettings(metadata))
const listUsage = async (query = '') => at.done(admin.get(`/ai/usage${query}`))
const getNewestUsage = async () => (await listUsage('?limit=1'))[0]
const reportedUsage = (prompt_tokens: number, completion_tokens: number) => ({
  usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
})
const createWorkspace = async (client = user) => (await at.done(client.post('/workspaces', { name: 'Office' })))._id

describe('the usage of completions', () => {
  test('GET /ai/usage returns all details of a completion to admins, and neither it nor the event contains its text', async () => {
    await changeSettings({ prices: { 'model-1': { prompt: 2.5, completion: 10 } } })
    const thread = await at.thread()
    await chat(user, main, { messages: [chatMessage('My secret is quince.')] }, thread)
    expect(await getNewestUsage()).toEqual({
      ...{
        _id: expect.any(String),
        created: expect.stringMatching(/Z$/),
        kind: 'completion',
        integration: main,
        source: at.source,
      },
      ...{ model: 'model-1', user: at.users.user, workspace: null, thread, promptTokens: 11, completionTokens: 7 },
      ...{ cost: 0.000098, estimated: false, status: 'completed', durationMs: expect.any(Number) },
    })
    expect(JSON.stringify([await listUsage(), (await admin.get('/events?source=ai')).body])).not.toContain('quince')
  })

  test('GET /ai/usage returns rows of the own tenant to admins, 403 to users and 401 without credentials', async () => {
    expect(statusAndCode(await user.get('/ai/usage'))).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await user.get('/ai/usage?groupBy=model'))).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await anonymous.get('/ai/usage'))).toEqual([401, 'UNAUTHENTICATED'])
    const otherTenantAdmin = (await createTestTenant()).as('admin')
    expect((await otherTenantAdmin.get('/ai/usage')).body).toEqual([])
    expect((await otherTenantAdmin.get('/ai/usage?groupBy=model')).body).toEqual([])
  })

  const plans: [string, ReplyPlan[], object, object][] = [
    [
      'reported usage',
      [reportedUsage(3, 4)],
      {},
      { promptTokens: 3, completionTokens: 4, estimated: false, status: 'completed' },
    ],
    [
      'no reported usage',
      [{ usage: null, text: 'Four words and more.' }],
      {},
      { completionTokens: 5, estimated: true },
    ],
    ['invalid reported usage', [reportedUsage(-1, 1e300)], {}, { completionTokens: 3, estimated: true }],
    ['reported usage beyond safe integers', [reportedUsage(2 ** 60, 1)], {}, { completionTokens: 3, estimated: true }],
    [
      'several rounds',
      [{ ...toolCalls(['nothing']), ...reportedUsage(10, 1) }, reportedUsage(20, 2)],
      {},
      { promptTokens: 30, completionTokens: 3, estimated: false },
    ],
    [
      'several rounds, one of them without reported usage',
      [{ ...toolCalls(['nothing']), usage: null }, reportedUsage(20, 2)],
      {},
      { estimated: true, status: 'completed' },
    ],
    [
      'a pause for client tools',
      [toolCalls(['pick'])],
      { clientTools: [{ name: 'pick' }] },
      { promptTokens: 11, status: 'completed' },
    ],
    ['an unauthorized source', [{ status: 401 }], {}, { completionTokens: 0, estimated: true, status: 'failed' }],
    [
      'a stream that breaks off',
      [{ cut: 2 }],
      { stream: true },
      { completionTokens: 1, estimated: true, status: 'failed' },
    ],
    [
      'an answer that breaks off after a tool round',
      [toolCalls(['nothing']), { cut: 0 }],
      {},
      { estimated: true, status: 'failed' },
    ],
    ['an answer without choices', [{ body: '{"choices":null}' }], {}, { status: 'failed' }],
    ['a rate limited source', [{ status: 429, headers: { 'retry-after': '7' } }], {}, { status: 'failed' }],
    ['a silent source', [{ hang: 1 }], { stream: true }, { status: 'failed', estimated: true }],
  ]

  test.each(plans)(
    'a completion adds exactly one usage row and one event: %s',
    async (name, replies, body, expected) => {
      if (name === 'a silent source') config.ATOLL_AI_TIMEOUT = 100
      const id = await at.agent({ tools: [await at.tool(`tool-${now()}`, '() => 1')] })
      openai.reply(...replies)
      await chat(user, id, body)
      const all = await listUsage(`?integration=${id}`)
      expect(all).toHaveLength(1)
      expect(all[0]).toMatchObject({ integration: id, ...expected })
      const [event] = (await admin.get('/events?source=ai&kind=completion&limit=1')).body
      expect(event).toMatchObject({
        eventName: all[0].status === 'completed' ? 'completion' : 'failure',
        user: at.users.user,
        metadata: { usage: all[0]._id, integration: id, promptTokens: all[0].promptTokens, status: all[0].status },
      })
    },
  )

  test('a completion that is rejected as invalid adds no usage row, not even for a summary', async () => {
    const id = await at.agent({ historyTokens: 100 })
    const thread = await at.thread(id)
    const long = { messages: [chatMessage('word '.repeat(150))] }
    for (let n = 0; n < 2; n++) await chat(user, id, long, thread)
    const context = { text: 'x'.repeat(17 << 10) }
    expect(statusAndCode(await chat(user, id, { ...long, context }, thread))).toEqual([400, 'INVALID_INPUT'])
    expect(await listUsage(`?integration=${id}`)).toMatchObject([{ status: 'completed' }, { status: 'completed' }])
  })

  test('a completion that fails during retrieval adds a failed row without tokens', async () => {
    const id = await at.agent({ vectorStores: ['tenant'] })
    const path = `/ai/sources/${at.source}/storage`
    await at.done(admin.post(path, { integrationId: id, scope: 'tenant' }))
    await at.done(admin.post(`${path}/upload`, { integrationId: id, content: 'Quinces are yellow.' }))
    openai.reply({ status: 401 })
    expect(statusAndCode(await chat(user, id))).toEqual([502, 'AI_UPSTREAM_ERROR'])
    const failed = await listUsage(`?integration=${id}&kind=completion`)
    expect(failed).toMatchObject([{ status: 'failed', promptTokens: 0, completionTokens: 0 }])
  })

  test('a usage row names the active workspace of the user', async () => {
    const [workspace, another] = [await createWorkspace(), await createWorkspace(admin)]
    await at.done(user.post(`/workspaces/${workspace}/activate`))
    await chat()
    expect(await getNewestUsage()).toMatchObject({ workspace })
    expect(await listUsage(`?workspace=${workspace}`)).toHaveLength(1)
    expect(await listUsage(`?workspace=${another}`)).toEqual([])
  })

  test('a failing completion writes none of its text to the log', async () => {
    const written: string[] = []
    const spies = (['stdout', 'stderr'] as const).map((name) =>
      spyOn(process[name], 'write').mockImplementation((text) => {
        written.push(String(text))
        return true
      }),
    )
    const logs = (['log', 'error', 'warn', 'info'] as const).map((name) =>
      spyOn(console, name).mockImplementation((...all) => void written.push(JSON.stringify(all))),
    )
    const lines = spyOn(logOutput, 'write').mockImplementation((line) => void written.push(line))
    openai.reply({ status: 500 }, { status: 500 }, { status: 500 })
    await chat(user, main, { messages: [chatMessage('quince')] })
    for (const spy of [...spies, ...logs, lines]) spy.mockRestore()
    expect(written.join('\n')).not.toContain('quince')
  })
})

describe('the cost of completions', () => {
  const price = (prompt: number, completion: number) => ({ prompt, completion })
  const costs = async (prices: object, prompt: number, completion: number, model = 'model-1') => {
    await changeSettings({ prices })
    openai.reply(reportedUsage(prompt, completion))
    await chat(user, main, { model })
    return (await getNewestUsage()).cost
  }

  test('the cost follows the price of the model per million tokens, or the price of * for unlisted models', async () => {
    const prices = { 'model-1': price(3, 15), '*': price(1, 2) }
    expect(await costs(prices, 1_000_000, 0)).toBe(3)
    expect(await costs(prices, 0, 2_000_000)).toBe(30)
    expect(await costs(prices, 1_000_000, 1_000_000, 'another')).toBe(3)
    expect(await costs({}, 1_000_000, 1_000_000)).toBe(0)
    expect(await costs({ toString: price(1, 1) }, 1_000_000, 0, 'constructor')).toBe(0)
  })

  test('the cost is exact to a millionth', async () => {
    expect(await costs({ '*': price(0.15, 0.6) }, 1_000_001, 3)).toBe(0.150002)
    expect(await costs({ '*': price(0.1, 0.2) }, 3, 6)).toBe(0.000002)
    await checkProperty(
      20,
      fc.asyncProperty(
        fc.nat(1e9),
        fc.nat(1e9),
        fc.nat(1e9),
        fc.nat(1e9),
        async (prompt, completion, fineIn, fineOut) => {
          const cost = await costs({ '*': price(fineIn / 1e6, fineOut / 1e6) }, prompt, completion)
          const fine = BigInt(prompt) * BigInt(fineIn) + BigInt(completion) * BigInt(fineOut)
          expect(Math.round(cost * 1e6)).toBe(Number((fine + 500_000n) / 1_000_000n))
        },
      ),
    )
  })

  test.each([
    ['prices that are not an object', { prices: 5 }],
    ['a negative price', { prices: { x: price(-1, 0) } }],
    ['a price without completion', { prices: { x: { prompt: 1 } } }],
    ['a price of a billion', { prices: { x: price(1e9, 0) } }],
    ['prices in quotes', { prices: { x: { prompt: '1', completion: '2' } } }],
  ])('PUT ai-configuration rejects invalid prices with 400 INVALID_INPUT: %s', async (_, metadata) => {
    expect(statusAndCode(await putSettings(metadata))).toEqual([400, 'INVALID_INPUT'])
  })
})

describe('GET /ai/usage', async () => {
  const own = await createAiFixture()
  afterAll(() => own.openai.stop())
  const queryUsage = async (query: string) => own.done(own.admin.get(`/ai/usage${query}`))
  const otherAgent = await own.agent()
  const { _id: office } = await own.done(own.user.post('/workspaces', { name: 'Office' }))
  await own.done(
    own.admin.put('/configurations/ai-configuration', { metadata: { prices: { '*': { prompt: 1, completion: 0 } } } }),
  )
  const recordUsage = async (
    when: string,
    userName: 'user' | 'other' | 'admin',
    prompt: number,
    more: { model?: string; to?: string; fails?: boolean } = {},
  ) => {
    moveClock(Date.parse(when))
    own.openai.reply(more.fails ? { status: 400 } : reportedUsage(prompt, 1))
    await own.chat(own.as(userName), more.to ?? own.main, { model: more.model })
  }
  await recordUsage('2031-01-30T10:00:00Z', 'user', 100)
  await recordUsage('2031-01-31T23:59:50Z', 'user', 200, { model: 'model-2' })
  await recordUsage('2031-02-01T00:00:00Z', 'other', 300, { to: otherAgent })
  await own.done(own.user.post(`/workspaces/${office}/activate`))
  await recordUsage('2031-02-01T12:00:00Z', 'user', 400)
  await recordUsage('2031-02-02T12:00:00Z', 'admin', 0, { fails: true })
  moveClock()

  const prompts = async (query: string) =>
    (await queryUsage(query)).map((row: { promptTokens: number }) => row.promptTokens)

  test('GET /ai/usage lists rows newest first and filters them by day, user, model, workspace, integration, source and status', async () => {
    expect((await prompts('')).slice(1)).toEqual([400, 300, 200, 100])
    expect(await prompts('?from=2031-01-31&to=2031-01-31')).toEqual([200])
    expect(await prompts('?from=2031-02-01T00:00:00.000Z&to=2031-02-01T12:00:00.000Z')).toEqual([300])
    expect(await prompts(`?user=${own.users.other}`)).toEqual([300])
    expect(await prompts(`?user=${own.users.other},${own.users.user}&model=model-1`)).toEqual([400, 300, 100])
    expect(await prompts(`?workspace=${office}`)).toEqual([400])
    expect(await prompts(`?integration=${otherAgent}`)).toEqual([300])
    expect(await prompts(`?source=${own.source}&status=completed`)).toEqual([400, 300, 200, 100])
    expect(await prompts('?source=echo')).toEqual([])
    expect((await queryUsage('?status=failed')).map((row: { user: string }) => row.user)).toEqual([own.users.admin])
    expect(await prompts('?model=undefined&user=&status=completed&limit=1')).toEqual([400])
  })

  test('GET /ai/usage supports sort, limit, page and count, and rejects invalid options with 400 INVALID_INPUT', async () => {
    const { headers, body } = await own.admin.get(
      '/ai/usage?status=completed&sort=promptTokens&limit=2&page=2&count=true',
    )
    expect(body.map((row: { promptTokens: number }) => row.promptTokens)).toEqual([300, 400])
    expect(headers.get('x-total-count')).toBe('4')
    expect((await own.admin.get('/ai/usage?limit=2')).headers.get('link')).toContain('%24after=')
    for (const query of [
      'sort=nothing',
      'limit=-1',
      'from=yesterday',
      'to=x',
      'groupBy=hour',
      'groupBy=model&sort=created',
    ])
      expect(statusAndCode(await own.admin.get(`/ai/usage?${query}`)), query).toEqual([400, 'INVALID_INPUT'])
  })

  test('GET /ai/usage?groupBy returns sums by one or several columns', async () => {
    const status = 'status=completed'
    expect(await queryUsage(`?${status}&groupBy=month`)).toEqual([
      { month: '2031-01', promptTokens: 300, completionTokens: 2, totalTokens: 302, cost: 0.0003, count: 2 },
      { month: '2031-02', promptTokens: 700, completionTokens: 2, totalTokens: 702, cost: 0.0007, count: 2 },
    ])
    const groups = async (query: string, ...keys: string[]) =>
      (await queryUsage(`?${status}&${query}`)).map((group: Record<string, unknown>) => keys.map((key) => group[key]))
    expect(await groups('groupBy=day', 'day', 'promptTokens')).toEqual([
      ['2031-01-30', 100],
      ['2031-01-31', 200],
      ['2031-02-01', 700],
    ])
    expect(await groups('groupBy=model&sort=-count', 'model', 'promptTokens', 'count')).toEqual([
      ['model-1', 800, 3],
      ['model-2', 200, 1],
    ])
    expect(await groups('groupBy=user,month&sort=-promptTokens', 'user', 'month', 'promptTokens')).toEqual([
      [own.users.user, '2031-02', 400],
      ...[
        [own.users.user, '2031-01', 300],
        [own.users.other, '2031-02', 300],
      ].sort((one, other) => (one[0]! < other[0]! ? -1 : 1)),
    ])
    expect(await groups('groupBy=workspace', 'workspace', 'promptTokens')).toEqual([
      [office, 400],
      [null, 600],
    ])
    expect(await groups('groupBy=integration,source&sort=promptTokens', 'integration', 'source', 'count')).toEqual([
      [otherAgent, own.source, 1],
      [own.main, own.source, 3],
    ])
    expect(await groups('groupBy=day&from=2031-02-01', 'day', 'promptTokens')).toEqual([['2031-02-01', 700]])
    expect(await queryUsage('?groupBy=status')).toMatchObject([
      { status: 'completed', count: 4 },
      { status: 'failed', count: 1 },
    ])
    const { headers, body } = await own.admin.get(`/ai/usage?${status}&groupBy=day&limit=1&page=2&count=true`)
    expect(body.map(({ day }: { day: string }) => day)).toEqual(['2031-01-31'])
    expect([headers.get('x-total-count'), !!headers.get('link')]).toEqual(['3', true])
  })

  test('GET /ai/usage?groupBy returns groups that add up to the sum of all rows, whatever the column', async () => {
    const all = await queryUsage('')
    const total = all.reduce((sum: number, row: { promptTokens: number }) => sum + row.promptTokens, 0)
    for (const by of [
      'day',
      'month',
      'model',
      'user',
      'workspace',
      'integration',
      'source',
      'thread',
      'status',
      'kind',
      'day,month,model,user',
    ]) {
      const groups = await queryUsage(`?groupBy=${by}`)
      const sum = (name: string) => groups.reduce((sum: number, group: Record<string, number>) => sum + group[name]!, 0)
      expect([sum('promptTokens'), sum('count')], by).toEqual([total, all.length])
    }
  })
})

test('housekeeping removes usage rows after ATOLL_AI_USAGE_RETENTION days, and sums that no budget needs any more', async () => {
  const own = await createAiFixture()
  const { tenant } = own
  moveClock(Date.parse('2032-01-10T00:00:00Z'))
  await own.chat()
  const old = now() + config.ATOLL_AI_USAGE_RETENTION * DAY_MS
  moveClock(old - 1000)
  await own.chat()
  moveClock(old + 1000)
  const held = { ...tenant, signal: new AbortController().signal }
  for (const task of housekeepingTasks().values()) await task(held as never)
  const { body } = await own.admin.get('/ai/usage')
  expect(body.map(({ created }: { created: string }) => created.slice(0, 10))).toEqual([
    toIsoString(old - 1000).slice(0, 10),
  ])
  const sums = (await tenant.db.query('select _id from ai_spent order by _id')) as [string][]
  expect(new Set(sums.map(([id]) => id.slice(0, 7)))).toEqual(new Set([toIsoString(old - 1000).slice(0, 7)]))
  await own.openai.stop()
})

test('GET /ai/usage?groupBy rejects more than 100,000 groups with 400 INVALID_INPUT', async () => {
  const { tenant, as } = await createTestTenant()
  const columns =
    '_id, created, source, model, thread, prompt_tokens, completion_tokens, cost, estimated, status, duration_ms, kind'
  const insert = `insert into ai_usage (${columns})
    with recursive n (i) as (select ? + 1 union all select i + 1 from n where i < ?)
    select cast(i as text), 1, 'echo', 'm', cast(i as text), 1, 1, 0, 0, 'completed', 1, 'completion' from n`
  // A write has a deadline.
  for (let first = 0; first <= 100_000; first += 9_091)
    await tenant.write((tx) => tx.query(insert, [first, first + 9_091]))
  const getUsage = (query: string) => as('admin').get(`/ai/usage?${query}`)
  expect((await getUsage('groupBy=thread')).body).toMatchObject({
    code: 'INVALID_INPUT',
    details: [{ path: 'groupBy', message: expect.stringContaining('100000') }],
  })
  expect((await getUsage('groupBy=thread&thread=7')).body).toMatchObject([{ thread: '7', count: 1 }])
  expect((await getUsage('groupBy=model')).body).toMatchObject([{ model: 'm', count: 100_001 }])
})
