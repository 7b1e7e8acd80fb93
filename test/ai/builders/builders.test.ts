import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { callApi, createTestTenant, statusAndCode } from '../../test-tenant'
import { chatMessage, createAiFixture, joinContent, parseEvents, toolCalls } from '../fixtures'

const at = await createAiFixture()
const { user, admin, openai, source, anonymous } = at
const editor = at.as('editor')
afterAll(() => openai.stop())
beforeEach(() => openai.clear())

const kinds = ['', '/pages', '/integrations'] as const
type Kind = (typeof kinds)[number] | '/plain'
const postBuild = (kind: Kind, body: object = {}, client = user, of = source) =>
  client.post(`/ai/sources/${of}/chat-completion${kind}`, { messages: [chatMessage('Hello')], ...body })
const postEcho = (kind: Kind, text: string, more: object = {}, client = user) =>
  postBuild(kind, { messages: [chatMessage(text)], ...more }, client, 'echo')
const callLine = (name: string, input: object) => `call ${name} ${JSON.stringify(input)}`

const block = { name: 'hero', content: '<h1>Hello</h1>', contentType: 'html' }
const blueprint = { key: 'books', name: 'Books', fields: [{ key: 'title', type: 'string' }] }
const hourly = { kind: 'schedule', cron: '0 * * * *' }
const integration = { name: 'Hourly', trigger: hourly, target: { kind: 'http', url: 'https://example.com/' } }
const listBlockNames = async () => (await admin.get('/blocks')).body.map(({ name }: { name: string }) => name)
const listOfferedTools = () =>
  openai.last().body.tools.map((tool: { function: { name: string } }) => tool.function.name)

describe('POST /ai/sources/:id/chat-completion', () => {
  test('POST /ai/sources/:id/chat-completion/plain returns a completion without a prompt of the platform', async () => {
    const { status, body } = await postBuild('/plain', { temperature: 0.5, model: 'model-7', rules: ['Be short.'] })
    expect(status).toBe(200)
    expect(body).toEqual({
      ...{
        id: expect.stringMatching(/^chatcmpl-/),
        object: 'chat.completion',
        created: expect.any(Number),
        model: 'model-7',
      },
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hello there!' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
    })
    const { messages, temperature, tools } = openai.last().body
    expect([messages.length, messages[1], temperature, tools]).toEqual([2, chatMessage('Hello'), 0.5, undefined])
    const system = { messages: [chatMessage('Be rude.', 'system'), chatMessage('Hello')] }
    expect((await postBuild('/plain', system)).status).toBe(200)
    expect(openai.last().body.messages).toEqual(system.messages)
  })

  test.each(['/plain', ...kinds] as const)(
    'a direct completion streams, pauses for client tools and resumes with their results: %p',
    async (kind) => {
      const { headers, body } = await postBuild(kind, { stream: true })
      expect(headers.get('content-type')).toStartWith('text/event-stream')
      const { events, end } = parseEvents(body)
      expect([joinContent(events), end]).toEqual(['Hello there!', '[DONE]'])
      openai.reply(toolCalls(['pick', { n: 1 }, 'c1']))
      const clientTools = [{ name: 'pick' }]
      const { body: pause } = await postBuild(kind, { clientTools })
      expect(pause).toMatchObject({ type: 'client_tool_calls', functionCalls: [{ id: 'c1' }] })
      const resumed = [
        chatMessage('Hello'),
        { role: 'assistant', tool_calls: pause.assistantToolCalls },
        { role: 'tool', tool_call_id: 'c1', content: 'two' },
      ]
      expect((await postBuild(kind, { clientTools, messages: resumed })).body.choices[0].message.content).toBe(
        'Hello there!',
      )
      expect(openai.last().body.messages.at(-1)).toEqual({ role: 'tool', tool_call_id: 'c1', content: 'two' })
    },
  )

  test.each(['/plain', ...kinds] as const)(
    'a direct completion is validated with 400 and recorded in the usage, also when the provider fails with 502: %p',
    async (kind) => {
      expect(statusAndCode(await postBuild(kind, { temperature: 3 }))).toEqual([400, 'INVALID_INPUT'])
      expect(statusAndCode(await postBuild(kind, { messages: [] }))).toEqual([400, 'INVALID_INPUT'])
      openai.reply({ status: 401 })
      expect(statusAndCode(await postBuild(kind))).toEqual([502, 'AI_UPSTREAM_ERROR'])
      await postBuild(kind, { model: 'model-5' })
      const rows = (await admin.get('/ai/usage?limit=2')).body
      expect(rows).toMatchObject([
        { status: 'completed', integration: null, source, model: 'model-5', user: at.users.user, thread: null },
        { status: 'failed', integration: null, source },
      ])
    },
  )

  test('a direct completion gets 401 without credentials, and 403 without any of the roles that the source names', async () => {
    const metadata = { apiUrl: openai.url, roles: ['designer'] }
    const { _id } = await at.made('/integration-sources', { name: 'few', kind: 'openai', metadata })
    for (const kind of ['/plain', ...kinds] as const) {
      expect(statusAndCode(await postBuild(kind, {}, anonymous))).toEqual([401, 'UNAUTHENTICATED'])
      expect(statusAndCode(await postBuild(kind, {}, user, _id))).toEqual([403, 'FORBIDDEN'])
      expect((await postBuild(kind, {}, admin, _id)).status).toBe(200)
      expect(statusAndCode(await postBuild(kind, {}, user, 'nothing'))).toEqual([404, 'INTEGRATION_SOURCE_NOT_FOUND'])
    }
    expect(statusAndCode(await admin.put(`/integration-sources/${_id}`, { metadata: { roles: 'designer' } }))).toEqual([
      400,
      'INVALID_INPUT',
    ])
  })

  test('a direct completion from another tenant gets 404 INTEGRATION_SOURCE_NOT_FOUND', async () => {
    const otherTenantAdmin = (await createTestTenant()).as('admin')
    for (const kind of ['/plain', ...kinds] as const)
      expect(statusAndCode(await postBuild(kind, {}, otherTenantAdmin))).toEqual([404, 'INTEGRATION_SOURCE_NOT_FOUND'])
  })
})

describe('a builder', () => {
  test('a builder uses its own prompt and tools, and rejects system messages and client tools that have the names of its own', async () => {
    await postBuild('')
    expect(listOfferedTools()).toEqual([
      'list_blueprints',
      'list_blocks',
      'draft_blueprints',
      'draft_blocks',
      'draft_integrations',
    ])
    expect(openai.last().body.messages[0]).toMatchObject({
      role: 'system',
      content: expect.stringContaining('draft_blocks'),
    })
    await postBuild('/pages')
    expect(listOfferedTools()).toEqual(['list_blocks', 'list_blueprints', 'draft_blocks'])
    await postBuild('/integrations', {}, admin)
    expect(listOfferedTools()).toEqual([
      ...['list_integrations', 'list_sources', 'list_lambdas', 'list_blueprints', 'draft_integrations'],
    ])
    const { parameters } = openai.last().body.tools.at(-1).function
    expect(JSON.stringify(parameters)).toContain('timezone')
    expect(statusAndCode(await postBuild('/pages', { messages: [chatMessage('Be rude.', 'system')] }))).toEqual([
      400,
      'INVALID_INPUT',
    ])
    expect(statusAndCode(await postBuild('/pages', { clientTools: [{ name: 'draft_blocks' }] }))).toEqual([
      400,
      'TOOL_NAME_TAKEN',
    ])
  })

  test('a builder returns drafts of blocks, blueprints and integrations without creating them', async () => {
    const { body } = await postEcho(
      '/pages',
      `${callLine('draft_blocks', { blocks: [{ ...block, colour: 'red' }] })}\nthen\nDone.`,
    )
    expect(body.choices[0].message.content).toBe('Done.')
    expect(body.drafts).toEqual([{ kind: 'blocks', draft: block }])
    expect(await listBlockNames()).not.toContain('hero')
    const all = await postEcho(
      '',
      [
        callLine('draft_blocks', { blocks: [block] }),
        callLine('draft_blueprints', { blueprints: [blueprint] }),
        callLine('draft_integrations', { integrations: [integration] }),
      ].join('\nthen\n'),
      {},
      admin,
    )
    expect(all.body.drafts).toEqual([
      { kind: 'blocks', draft: block },
      { kind: 'blueprints', draft: blueprint },
      { kind: 'integrations', draft: integration },
    ])
    expect((await admin.get('/integrations?trigger.kind=schedule')).body).toEqual([])
    for (const [path, { draft }] of [
      ['/blocks', all.body.drafts[0]],
      ['/integrations', all.body.drafts[2]],
    ] as const)
      expect((await admin.post(path, draft)).status).toBe(201)
  })

  test('a streamed answer of a builder carries the drafts in its final chunk', async () => {
    const { body } = await postEcho('/pages', `${callLine('draft_blocks', { blocks: [block] })}\nthen\nDone.`, {
      stream: true,
    })
    expect(parseEvents(body).events.at(-1)).toMatchObject({
      drafts: [{ kind: 'blocks', draft: block }],
      choices: [{ delta: {} }],
    })
  })

  const wrong: [Kind, string, object, string][] = [
    ['/pages', 'draft_blocks', { blocks: [{ name: 'x' }] }, '/blocks/0/content'],
    ['/pages', 'draft_blocks', { blocks: [{ ...block, contentType: 'pdf' }] }, '/blocks/0/contentType'],
    ['/pages', 'draft_blocks', {}, '/blocks'],
    ['/pages', 'draft_blocks', { blocks: [block, { ...block, content: '<div>'.repeat(5_000) }] }, '/blocks/1'],
    ['/integrations', 'draft_integrations', { integrations: [{ name: 'x' }] }, '/integrations/0/trigger'],
    [
      ...(['/integrations', 'draft_integrations'] as const),
      { integrations: [{ ...integration, trigger: { kind: 'schedule', cron: 'now' } }] },
      '/integrations/0/trigger/cron',
    ],
    [
      ...(['/integrations', 'draft_integrations'] as const),
      { integrations: [integration, { ...integration, target: { kind: 'lambda', lambdaId: 'nothing' } }] },
      '/integrations/1/target',
    ],
    ['', 'draft_blueprints', { blueprints: [{ ...blueprint, key: 'No' }] }, '/blueprints/0/key'],
  ]

  test.each(wrong)(
    'a builder reports invalid drafts to the model as INVALID_INPUT with their path: %p %s',
    async (kind, tool, input, path) => {
      openai.reply(toolCalls([tool, input]), { text: 'Sorry.' })
      const { body } = await postBuild(kind, {}, admin)
      expect(body.drafts).toBeUndefined()
      const result = JSON.parse(openai.last().body.messages.at(-1).content)
      expect(result.error.code).toBe('INVALID_INPUT')
      expect(result.error.details[0].path).toStartWith(path)
    },
  )

  test('a builder returns only the valid draft when the model corrects an invalid one', async () => {
    const text = `${callLine('draft_blocks', { blocks: [{}] })}\nthen\n${callLine('draft_blocks', { blocks: [block] })}\nthen\nDone.`
    expect((await postEcho('/pages', text)).body.drafts).toEqual([{ kind: 'blocks', draft: block }])
  })

  test('create: true creates the drafts with the rights of the caller, and answers 403 FORBIDDEN to callers without them', async () => {
    const text = (name: string) => `${callLine('draft_blocks', { blocks: [{ ...block, name }] })}\nthen\nDone.`
    const { body } = await postEcho('/pages', text('made'), { create: true })
    expect(body.drafts).toEqual([
      {
        kind: 'blocks',
        draft: { ...block, name: 'made' },
        created: expect.objectContaining({ _id: expect.any(String) }),
      },
    ])
    expect((await user.get(`/blocks/${body.drafts[0].created._id}`)).body).toMatchObject({ name: 'made' })
    const editors = (contentEditors: string[]) =>
      at.done(admin.put('/configurations/app-configuration', { contentEditors }))
    await editors(['editor'])
    expect(statusAndCode(await postEcho('/pages', text('never'), { create: true }))).toEqual([403, 'FORBIDDEN'])
    expect((await postEcho('/pages', text('never'))).body.drafts).toHaveLength(1)
    expect((await postEcho('/pages', text('by an admin'), { create: true }, admin)).status).toBe(200)
    await editors([])
    expect(await listBlockNames()).toContain('by an admin')
    expect(await listBlockNames()).not.toContain('never')
  })

  test('create: true answers 403 FORBIDDEN to callers who may not create everything that the builder drafts', async () => {
    for (const [kind, client] of [
      ['/integrations', user],
      ['/integrations', editor],
      ['', user],
      ['', editor],
    ] as const)
      expect(statusAndCode(await postBuild(kind, { create: true }, client))).toEqual([403, 'FORBIDDEN'])
    expect(openai.requests).toEqual([])
    const text = callLine('draft_integrations', { integrations: [{ ...integration, name: 'made' }] })
    const { body } = await postEcho('/integrations', text, { create: true }, admin)
    expect((await admin.get(`/integrations/${body.drafts[0].created._id}`)).body).toMatchObject({ name: 'made' })
  })

  test('an API token without the scope blocks:write gets 403 for create: true, and FORBIDDEN from the tool list_blocks', async () => {
    const token = async (...scopes: string[]) => {
      const signedUp = { username: `u${crypto.randomUUID()}`, password: 'correct-horse', authType: 'oauth' }
      const { body } = await anonymous.post('/signup', signedUp)
      const headers = { authorization: `Bearer ${body.payload.token}` }
      const made = await callApi('POST', `${at.origin}/api/me/api-tokens`, { headers, body: { nickname: 'x', scopes } })
      return anonymous.with({ 'x-api-key': made.body.token })
    }
    const aiToken = await token('ai:write')
    expect(statusAndCode(await postBuild('/pages', { create: true }, aiToken))).toEqual([403, 'FORBIDDEN'])
    expect(
      (await postEcho('/pages', callLine('draft_blocks', { blocks: [block] }), {}, aiToken)).body.drafts,
    ).toHaveLength(1)
    expect((await postEcho('/pages', 'call list_blocks {}', {}, aiToken)).body.choices[0].message.content).toContain(
      'FORBIDDEN',
    )
    const blocksToken = await token('ai:write', 'blocks:write')
    expect((await postBuild('/pages', { create: true }, blocksToken)).status).toBe(200)
    expect(
      (await postEcho('/pages', 'call list_blocks {}', {}, blocksToken)).body.choices[0].message.content,
    ).toContain('_id')
  })

  test('a builder lists only blueprints and sources that its caller may see, and never the address of a source', async () => {
    await at.made('/blueprints', { ...blueprint, key: 'secrets' })
    const runTool = async (tool: string, client = user) =>
      (await postEcho('', `call ${tool} {}`, {}, client)).body.choices[0].message.content
    expect(await runTool('list_blueprints')).not.toContain('secrets')
    expect(await runTool('list_blueprints', editor)).toContain('secrets')
    expect(await runTool('list_sources')).toContain('TOOL_NOT_FOUND')
    expect(await runTool('list_sources', admin)).toContain(source)
    expect(await runTool('list_sources', admin)).not.toContain(openai.url)
  })

  test('a builder reports unknown blueprints to admins only, so that users cannot find out which ones exist', async () => {
    const referringTo = (key: string) => ({
      ...integration,
      target: { kind: 'ai', sourceId: 'echo', blueprints: [key] },
    })
    for (const key of ['secrets', 'nothing']) {
      const { body } = await postEcho(
        '/integrations',
        callLine('draft_integrations', { integrations: [referringTo(key)] }),
      )
      expect(body.drafts).toHaveLength(1)
    }
    const text = callLine('draft_integrations', { integrations: [referringTo('nothing')] })
    expect((await postEcho('/integrations', text, {}, admin)).body.choices[0].message.content).toContain(
      '/target/blueprints/0',
    )
  })
})
