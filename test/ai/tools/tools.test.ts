import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { issueApiToken } from '../../../src/accounts/api-tokens'
import { setServer } from '../../../src/tenancy/client-connection'
import { createTestTenant, fullAccessRules, statusAndCode } from '../../test-tenant'
import { chatMessage, createAiFixture, joinContent, parseEvents, toolCalls } from '../fixtures'

const at = await createAiFixture()
const { user, admin, openai, main, chat } = at
afterAll(() => openai.stop())
beforeEach(() => openai.clear())

const lastMessages = () => openai.last().body.messages
/** Returns the tool results of the last request by call id. */
const lastResults = () =>
  Object.fromEntries(
    lastMessages()
      .filter(({ role }: { role: string }) => role === 'tool')
      .map((one: { tool_call_id: string; content: string }) => [one.tool_call_id, parseJsonOrText(one.content)]),
  )
function parseJsonOrText(text: string) {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
const offeredToolNames = () =>
  (openai.last().body.tools ?? []).map((one: { function: { name: string } }) => one.function.name)

const countTool = await at.tool('count', '({ body, query, user }) => ({ twice: body.n * 2, query, user: user._id })')
const failingTool = await at.tool('fails', '() => { throw new Error("out of order") }')
const restrictedTool = await at.tool('few', '() => 1', { roles: ['gardener'] })

/** Creates tools of each kind of target, and a counter of the entities that they have created. */
async function createLimitedTools() {
  await at.made('/blueprints', { key: 'limited', name: 'Limited', fields: [] })
  const code = (name: string) => `async (_, { entities }) => (await entities('limited').create({ }), '${name}')`
  const servingLambda = await at.made('/lambdas', {
    name: 'serving',
    code: `export default ${code('serving')}`,
    serviceRole: 'admin',
  })
  const tool = async (name: string, target: object) =>
    (await at.made('/integrations', { trigger: { kind: 'tool', name, description: name }, target }))._id
  return {
    lambda: [
      await at.tool('plain', code('plain')),
      await tool('serving', { kind: 'lambda', lambdaId: servingLambda._id }),
    ],
    hidden: [
      await tool('posts', { kind: 'http', url: openai.url.replace('/v1', '/models'), method: 'GET' }),
      await tool('mails', { kind: 'email', to: 'a@example.com', subject: 'Hello', text: 'You' }),
      await tool('asks', { kind: 'ai', sourceId: at.source, model: 'expert' }),
    ],
    countEntities: async () =>
      Number(
        (
          await at.tenant.db.query(
            `select count(*) from entities e join blueprints b on b.code = e.blueprint where b.key = 'limited'`,
          )
        )[0]![0],
      ),
  }
}

describe('server tools', () => {
  test.each([false, true])(
    'server tools are called in as many rounds as the model wants, and their results go back to it (stream: %p)',
    async (stream) => {
      const id = await at.agent({ tools: [countTool] })
      openai.reply(
        { ...toolCalls(['count', { n: 1 }, 'c1'], ['count', { n: 2 }, 'c2']), text: 'Let me see. ' },
        toolCalls(['count', { n: 3 }, 'c3']),
        { text: 'Six.' },
      )
      const { status, body } = await chat(user, id, { stream, queryParams: { page: 4 } })
      expect(status).toBe(200)
      const answer = stream ? joinContent(parseEvents(body).events) : body.choices[0].message.content
      expect(answer).toBe('Let me see. Six.')
      const { usage } = stream ? parseEvents(body).events.at(-1) : body
      expect(usage).toEqual({ prompt_tokens: 33, completion_tokens: 21, total_tokens: 54 })
      const more = { query: { page: 4 }, user: at.users.user }
      expect(lastResults()).toEqual({ c1: { twice: 2, ...more }, c2: { twice: 4, ...more }, c3: { twice: 6, ...more } })
      expect(lastMessages().map(({ role }: { role: string }) => role)).toEqual([
        'user',
        'assistant',
        'tool',
        'tool',
        'assistant',
        'tool',
      ])
      expect(offeredToolNames()).toEqual(['count'])
      expect((await at.usage())[0]).toMatchObject({ prompt: 33, completion: 21 })
    },
  )

  test('server tools that fail, are unknown or get invalid arguments return an error code to the model, and the chat succeeds', async () => {
    const id = await at.agent({ tools: [countTool, failingTool] })
    openai.reply(
      toolCalls(
        ...([
          ['fails', {}, 'c1'],
          ['nothing', {}, 'c2'],
          ['count', '{"n":', 'c3'],
          ['count', '[1]', 'c4'],
          ['count', '{"__proto__":1}', 'c5'],
          ['count', '', 'c6'],
        ] as [string, string, string][]),
      ),
    )
    expect((await chat(user, id)).status).toBe(200)
    const codes = Object.entries(lastResults()).map(([id, one]) => [
      id,
      (one as { error?: { code: string } }).error?.code,
    ])
    expect(Object.fromEntries(codes)).toEqual({
      ...{ c1: 'LAMBDA_FAILED', c2: 'TOOL_NOT_FOUND', c3: 'INVALID_ARGUMENTS', c4: 'INVALID_ARGUMENTS' },
      ...{ c5: 'INVALID_INPUT', c6: undefined },
    })
    // The message of an error in a lambda is for admins only.
    expect(JSON.stringify(lastMessages())).not.toContain('out of order')
  })

  test('tool calls without an id, or with a repeated one, get a unique id', async () => {
    const id = await at.agent({ tools: [countTool] })
    for (const stream of [false, true]) {
      openai.reply(
        toolCalls(['count', { n: 1 }], ['count', { n: 2 }]),
        toolCalls(['count', { n: 3 }, 'c'], ['count', { n: 4 }, 'c']),
        toolCalls(['count', { n: 5 }, 'c']),
      )
      expect((await chat(user, id, { stream })).status).toBe(200)
      const calls = lastMessages().flatMap(({ tool_calls = [] }: { tool_calls?: { id: string }[] }) =>
        tool_calls.map((one) => one.id),
      )
      expect(new Set(calls).size).toBe(5)
      expect(calls.every((one: string) => one.length > 0)).toBeTrue()
      expect(Object.keys(lastResults()).sort()).toEqual(calls.toSorted())
    }
  })

  test('server tools are withdrawn after maxToolRounds, so that the model has to answer', async () => {
    const id = await at.agent({ tools: [countTool], maxToolRounds: 2 })
    openai.own.always = ({ body }) => (body.tools ? toolCalls(['count', { n: 1 }]) : { text: 'Enough.' })
    const { body } = await chat(user, id)
    openai.own.always = {}
    expect(body.choices[0]).toMatchObject({ message: { content: 'Enough.' }, finish_reason: 'stop' })
    expect(openai.requests).toHaveLength(3)
    const never = await at.agent({ tools: [countTool], maxToolRounds: 0 })
    await chat(user, never)
    expect(offeredToolNames()).toEqual([])
    // A call of a tool that was not offered is ignored.
    openai.reply(toolCalls(['count']))
    expect((await chat(user, never)).body.choices[0].finish_reason).toBe('stop')
  })

  test('server tools are offered only while they are active, and only to callers with one of their roles', async () => {
    const id = await at.agent({ tools: [restrictedTool, countTool] })
    await chat(user, id)
    expect(offeredToolNames()).toEqual(['count'])
    openai.reply(toolCalls(['few', {}, 'c1']))
    await chat(user, id)
    expect(lastResults().c1.error.code).toBe('TOOL_NOT_FOUND')
    await chat(admin, id)
    expect(offeredToolNames()).toEqual(['few', 'count'])
    await at.done(admin.put(`/integrations/${countTool}`, { active: false }))
    await chat(user, id)
    await at.done(admin.put(`/integrations/${countTool}`, { active: true }))
    expect(offeredToolNames()).toEqual([])
  })

  test('agents may be tools of agents, and one that calls itself gets TOO_DEEP', async () => {
    const trigger = { kind: 'tool', name: 'expert', description: 'Knows.' }
    const expert = await at.made('/integrations', {
      trigger,
      target: { kind: 'ai', sourceId: at.source, model: 'expert' },
    })
    const id = await at.agent({ tools: [expert._id] })
    openai.own.always = ({ body }) =>
      body.model === 'expert' ? { text: `Of course: ${body.messages.at(-1).content}` } : {}
    openai.reply(toolCalls(['expert', { message: 'why?' }, 'c1']))
    await chat(user, id)
    expect(lastResults()).toEqual({ c1: 'Of course: why?' })
    expect((await at.usage()).slice(0, 2).map(({ model }) => model)).toEqual(['model-1', 'expert'])

    // From here on, the expert calls itself.
    const target = { kind: 'ai', sourceId: at.source, model: 'circle', tools: [expert._id] }
    await at.done(admin.put(`/integrations/${expert._id}`, { target }))
    openai.own.always = ({ body }) =>
      body.messages.at(-1).role === 'user'
        ? toolCalls(['expert', { message: 'again' }])
        : { text: body.messages.at(-1).content }
    openai.clear()
    const { status, body } = await chat(user, id)
    openai.own.always = {}
    expect(status).toBe(200)
    expect(JSON.stringify(body)).toContain('TOO_DEEP')
    expect(openai.requests.length).toBeLessThan(14)
  })

  test('tools called by an API token need the scopes that a direct request would need, or return the missing scope', async () => {
    const { lambda, hidden, countEntities } = await createLimitedTools()
    const id = await at.agent({ tools: [...lambda, ...hidden], blueprints: ['limited'] })
    const codes = async (...scopes: string[]) => {
      const { token } = await issueApiToken(at.tenant, at.users.admin, { nickname: 'limited', scopes })
      openai.clear()
      const names = ['plain', 'serving', 'posts', 'mails', 'asks', 'find_limited', 'create_limited']
      openai.own.always = ({ body }) =>
        body.model === 'expert'
          ? { text: 'I know.' }
          : body.messages.at(-1).role === 'tool'
            ? {}
            : toolCalls(...names.map((name): [string, object, string] => [name, {}, name]))
      await at.done(chat(at.anonymous.with({ 'x-api-key': token }), id))
      openai.own.always = {}
      const results = lastResults()
      return Object.fromEntries(names.map((name) => [name, results[name]?.error?.message ?? 'done']))
    }
    const no = (scope: string) => `This API token does not have the scope ${scope}.`
    const all = { plain: 'done', serving: 'done', posts: 'done', mails: 'done', asks: 'done' }
    expect(await codes('ai:write')).toEqual({
      ...{ plain: no('lambdas:write'), serving: no('lambdas:write'), asks: 'done' },
      ...{ posts: no('integrations:write'), mails: no('integrations:write') },
      ...{ find_limited: no('entities:read'), create_limited: no('entities:write') },
    })
    expect(await countEntities()).toBe(0)
    // A lambda has the scopes of its caller, unless it has a service role.
    expect(await codes('ai:write', 'lambdas:write', 'integrations:write', 'entities:read')).toEqual({
      ...{
        ...all,
        plain: expect.stringContaining(no('entities:write')),
        find_limited: 'done',
        create_limited: no('entities:write'),
      },
    })
    expect(await countEntities()).toBe(1)
    expect(await codes()).toEqual({ ...all, find_limited: 'done', create_limited: 'done' })
    expect(await countEntities()).toBe(4)
  })

  test('tools of another tenant are rejected with 400 INVALID_INPUT', async () => {
    const otherTenant = await createTestTenant()
    const { status, body } = await otherTenant.as('admin').post('/ai/agents', { sourceId: 'echo', tools: [countTool] })
    expect([status, body.code]).toEqual([400, 'INVALID_INPUT'])
  })
})

describe('blueprint tools', async () => {
  await at.made('/blueprints', {
    key: 'books',
    name: 'Books',
    fields: [
      { key: 'title', type: 'string', required: true },
      { key: 'price', type: 'decimal' },
      { key: 'tags', type: 'string', multi: true, enum: ['new', 'old'] },
      { key: 'secret', type: 'string', readRoles: ['gardener'], writeRoles: ['gardener'] },
    ],
    permissions: [
      ...fullAccessRules('user', 'user').slice(0, 2),
      { operation: 'delete', scope: 'tenant', roleBased: ['gardener'] },
    ],
  })
  await at.made('/blueprints/books/entities', { title: 'Of the admin', secret: 'x' })
  const id = await at.agent({ blueprints: ['books'] })

  test('blueprint tools cover only the operations that the caller may use, and only the fields that the caller may see', async () => {
    await chat(user, id)
    expect(offeredToolNames()).toEqual(['find_books', 'get_books', 'create_books'])
    const create = openai.last().body.tools.at(-1).function
    expect(create.parameters).toEqual({
      type: 'object',
      properties: {
        title: { type: 'string' },
        price: { type: 'string', description: 'decimal' },
        tags: { type: 'array', items: { type: 'string', enum: ['new', 'old'] }, description: '' },
      },
      required: ['title'],
    })
    expect(JSON.stringify(openai.last().body.tools)).not.toContain('secret')
    await chat(admin, id)
    expect(offeredToolNames()).toEqual(['find_books', 'get_books', 'create_books', 'update_books', 'remove_books'])
  })

  test('blueprint tools read and write with the rights of the caller', async () => {
    openai.reply(
      toolCalls(
        ['create_books', { title: 'Emma', price: '9.90' }, 'made'],
        ['create_books', { title: 'Emma', secret: 'mine' }, 'hidden'],
        ['create_books', { price: 1 }, 'wrong'],
        ['remove_books', { identifier: 'x' }, 'gone'],
      ),
      toolCalls(
        ['find_books', { query: { price: { $gt: '5' } } }, 'found'],
        ['find_books', {}, 'all'],
        ['find_books', { query: { title: 'Of the admin' } }, 'others'],
        ['get_books', { identifier: 'nothing' }, 'none'],
        ['get_books', {}, 'nobody'],
      ),
    )
    expect((await chat(user, id)).status).toBe(200)
    const { made, hidden, wrong, gone, found, all, others, none, nobody } = lastResults()
    expect(made).toMatchObject({ title: 'Emma', user: at.users.user })
    expect(hidden.error.code).toBe('FORBIDDEN')
    expect(wrong.error.code).toBe('INVALID_INPUT')
    expect(gone.error.code).toBe('TOOL_NOT_FOUND')
    expect(found).toMatchObject([{ title: 'Emma' }])
    expect(all).toHaveLength(1)
    expect(others).toEqual([])
    expect(none.error.code).toBe('ENTITY_NOT_FOUND')
    expect(nobody.error.code).toBe('INVALID_INPUT')
  })

  test('a number in the arguments that would be changed is refused with its place, and nothing is stored', async () => {
    const count = async () => (await admin.get('/blueprints/books/entities?$limit=1000')).body.length
    const before = await count()
    openai.reply(
      toolCalls(
        ['create_books', '{"title":"Exact","price":"9007199254740993.01"}', 'exact'],
        ['create_books', '{"title":"Changed","price":9007199254740993}', 'changed'],
        ['find_books', '{"query":{"price":{"$gt":9007199254740993}}}', 'found'],
      ),
    )
    expect((await chat(user, id)).status).toBe(200)
    const { exact, changed, found } = lastResults()
    expect(exact).toMatchObject({ price: '9007199254740993.01' })
    for (const [{ error }, path] of [
      [changed, '/price'],
      [found, '/query/price/$gt'],
    ]) {
      expect(error).toMatchObject({ code: 'INVALID_ARGUMENTS', details: [{ path }] })
      expect(error.message).toContain('9007199254740993 cannot be held exactly')
      expect(error.message).toContain('Send it as text')
    }
    expect(await count()).toBe(before + 1)
  })

  test('find tools accept a query in any usual place, and return INVALID_INPUT with a path for options they do not have', async () => {
    for (let n = 0; n < 3; n++)
      await at.done(admin.post('/blueprints/books/entities', { title: `Bulk ${n}`, price: `${n}.00` }))
    const bulk = { title: { $like: 'Bulk%' } }
    openai.reply(
      toolCalls(
        ['find_books', { query: { ...bulk, $limit: 2 } }, 'inside'],
        ['find_books', { ...bulk, $limit: 2, $sort: '-price' }, 'beside'],
        ['find_books', { query: bulk, $limit: 1, $skip: 1, $sort: 'price' }, 'both'],
        ['find_books', { query: null, $limit: 1e9 }, 'many'],
        ['find_books', { limit: 1 }, 'unknown'],
        ['find_books', { query: { $first: 1 } }, 'option'],
        ['find_books', { query: bulk, $limit: 'some' }, 'text'],
        ['find_books', { query: 'Bulk' }, 'words'],
        ['find_books', { query: { title: 'x' }, title: 'y' }, 'twice'],
        ['get_books', { identifier: 'x', $select: 'title' }, 'get'],
        ['remove_books', { identifier: 'x', force: true }, 'remove'],
      ),
    )
    await at.done(chat(admin, id))
    const { inside, beside, both, many, ...refused } = lastResults()
    expect(inside).toHaveLength(2)
    expect(beside.map(({ price }: { price: string }) => Number(price))).toEqual([2, 1])
    expect(both.map(({ price }: { price: string }) => Number(price))).toEqual([1])
    expect(many.length).toBeGreaterThan(2)
    const paths = Object.entries(refused).map(([call, { error }]) => [call, error.code, error.details[0].path])
    expect(paths).toEqual([
      ['unknown', 'INVALID_INPUT', 'limit'],
      ['option', 'INVALID_INPUT', '$first'],
      ['text', 'INVALID_INPUT', '$limit'],
      ['words', 'INVALID_INPUT', 'query'],
      ['twice', 'INVALID_INPUT', 'title'],
      ['get', 'INVALID_INPUT', '$select'],
      ['remove', 'INVALID_INPUT', 'force'],
    ])
    for (const { error } of Object.values(refused)) expect(error.details[0].message).toMatch(/[.?]$/)
  })

  test('find tools return 20 entities by default and at most 100', async () => {
    await at.made('/blueprints', { key: 'notes', name: 'Notes', fields: [{ key: 'n', type: 'number' }] })
    const operations = Array.from({ length: 101 }, (_, n) => ({ op: 'create', data: { n } }))
    await at.done(admin.post('/blueprints/notes/entities/batch', { operations }))
    openai.reply(toolCalls(['find_notes', { $limit: 101 }, 'most'], ['find_notes', {}, 'few']))
    await at.done(chat(admin, await at.agent({ blueprints: ['notes'] })))
    expect([lastResults().most.length, lastResults().few.length]).toEqual([100, 20])
  })

  test('a deleted blueprint has no tools any more', async () => {
    await at.made('/blueprints', { key: 'short', name: 'Short', fields: [] })
    const agent = await at.agent({ blueprints: ['short', 'books'] })
    await at.done(admin.delete('/blueprints/short'))
    expect((await chat(user, agent)).status).toBe(200)
    expect(offeredToolNames()).toHaveLength(3)
  })
})

describe('client tools', () => {
  const clientTools = [
    {
      name: 'pick',
      description: 'Picks a color.',
      schema: { type: 'object', properties: { color: { type: 'string' } } },
    },
    { type: 'function', function: { name: 'ring', parameters: { type: 'object' } } },
  ]

  test.each([false, true])(
    'client tools pause the turn until the client sends their results, without state on the server (stream: %p)',
    async (stream) => {
      const id = await at.agent({ tools: [countTool] })
      openai.reply(
        { ...toolCalls(['count', { n: 1 }, 'c1']), text: 'Wait. ' },
        toolCalls(['pick', { color: 'teal' }, 'c2'], ['count', { n: 2 }, 'c3'], ['ring', '', 'c4']),
      )
      const { status, body } = await chat(user, id, { stream, clientTools })
      expect(status).toBe(200)
      expect(openai.last().body.tools).toHaveLength(3)
      const { events, end } = stream ? parseEvents(body) : { events: [body], end: '[DONE]' }
      expect(end).toBe('[DONE]')
      const call = (id: string, name: string, args: string) => ({
        id,
        type: 'function',
        function: { name, arguments: args },
      })
      const [c1, c2, c3, c4] = [
        call('c1', 'count', '{"n":1}'),
        call('c2', 'pick', '{"color":"teal"}'),
        call('c3', 'count', '{"n":2}'),
        call('c4', 'ring', '{}'),
      ]
      const pause = events.at(-1)
      expect(pause).toEqual({
        type: 'client_tool_calls',
        functionCalls: [c2, c4],
        backendResults: [
          { functionCall: c1, result: expect.objectContaining({ twice: 2 }) },
          { functionCall: c3, result: expect.objectContaining({ twice: 4 }) },
        ],
        assistantToolCalls: [c1, c2, c3, c4],
        usage: { prompt_tokens: 22, completion_tokens: 14, total_tokens: 36 },
      })
      const calls = openai.requests.length
      const next = [
        chatMessage('Hello'),
        { role: 'assistant', content: '', tool_calls: pause.assistantToolCalls },
        { role: 'tool', tool_call_id: 'c4', content: 'rang' },
        { role: 'tool', tool_call_id: 'c2', content: '{"ok":true}' },
      ]
      openai.reply({ text: 'Done.' })
      const after = await chat(user, id, { stream, clientTools, messages: next })
      expect(stream ? joinContent(parseEvents(after.body).events) : after.body.choices[0].message.content).toBe('Done.')
      expect(openai.requests).toHaveLength(calls + 1)
      // The server adds the results of its own tools.
      const toolMessages = lastMessages().slice(2)
      expect(toolMessages.map((one: { tool_call_id: string }) => one.tool_call_id)).toEqual(['c1', 'c2', 'c3', 'c4'])
      expect(JSON.parse(toolMessages[0].content)).toMatchObject({ twice: 2 })
      expect([toolMessages[1].content, toolMessages[3].content]).toEqual(['{"ok":true}', 'rang'])

      // Another user does not get those results.
      await chat(at.as('other'), id, { clientTools, messages: next })
      expect(lastMessages()[2].content).toBe('This was not answered.')
    },
  )

  test('client tools with the name of another tool are rejected with 400 TOOL_NAME_TAKEN', async () => {
    const id = await at.agent({ tools: [countTool] })
    const named = (name: string) => ({ clientTools: [{ name }] })
    expect(statusAndCode(await chat(user, id, named('count')))).toEqual([400, 'TOOL_NAME_TAKEN'])
    expect(statusAndCode(await chat(user, main, { clientTools: [{ name: 'a' }, { name: 'a' }] }))).toEqual([
      400,
      'TOOL_NAME_TAKEN',
    ])
    expect((await chat(user, main, named('count'))).status).toBe(200)
  })

  test('client tool calls with invalid JSON go back to the model as INVALID_ARGUMENTS and not to the client', async () => {
    openai.reply(toolCalls(['pick', '{"color"', 'c1']), { text: 'Sorry.' })
    const { body } = await chat(user, main, { clientTools })
    expect(body.choices[0].message.content).toBe('Sorry.')
    expect(lastResults().c1.error.code).toBe('INVALID_ARGUMENTS')
  })
})

test('the connection of a completion may stay idle until the end, also after a lambda has run as a tool', async () => {
  const timeouts: [seconds: number, modelCalls: number][] = []
  setServer({ requestIP: () => null, timeout: (_, seconds) => void timeouts.push([seconds, openai.requests.length]) })
  try {
    const agent = await at.agent({ tools: [countTool] })
    openai.reply(toolCalls(['count', { n: 2 }, 'c1']), { text: 'Four.' })
    expect((await chat(user, agent)).status).toBe(200)
    expect(timeouts.filter(([seconds]) => seconds > 0)).toEqual([[10, 2]])
  } finally {
    setServer(undefined)
  }
})
