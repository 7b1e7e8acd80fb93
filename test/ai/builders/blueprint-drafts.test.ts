import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { config } from '../../../src/config'
import { handleRequest } from '../../../src/gateway'
import { checkProperty } from '../../property-runner'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { waitUntil } from '../../wait-until'
import { createAiFixture } from '../fixtures'

const at = await createAiFixture()
const { user, admin, openai, source, anonymous } = at
const editor = at.as('editor')
afterAll(() => openai.stop())
beforeEach(() => openai.clear())

const field = (key: string, more: object = {}) => ({ key, type: 'string', ...more })
const books = { key: 'books', name: 'Books', fields: [field('title', { required: true })] }
const draftRequest = (prompt: unknown = 'A library.', more: object = {}) => ({
  prompt: typeof prompt === 'string' ? prompt : JSON.stringify(prompt),
  ...more,
})
const postDraft = (body: object, client = user, of = source) => client.post(`/ai/sources/${of}/blueprints`, body)
const answerWith = (...texts: unknown[]) =>
  openai.reply(...texts.map((one) => ({ text: typeof one === 'string' ? one : JSON.stringify(one) })))

describe('POST /ai/sources/:id/blueprints', () => {
  test('POST /ai/sources/:id/blueprints returns drafts that are not created yet and that POST /blueprints accepts as they are', async () => {
    answerWith({ blueprints: [{ ...books, _id: 'mine', colour: 'red' }] })
    const { status, body } = await postDraft(draftRequest())
    expect([status, body]).toEqual([
      200,
      { blueprints: [books], usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 } },
    ])
    expect(statusAndCode(await admin.get('/blueprints/books'))).toEqual([404, 'BLUEPRINT_NOT_FOUND'])
    const { messages, response_format, model } = openai.last().body
    expect(messages.map(({ role }: { role: string }) => role)).toEqual(['system', 'user'])
    expect(messages[1].content).toBe('A library.')
    expect(messages[0].content).toContain('"renamedFrom"')
    expect([response_format.type, model]).toEqual(['json_schema', 'gpt-4o-mini'])
    expect((await editor.post('/blueprints', body.blueprints[0])).status).toBe(201)
    expect((await admin.delete('/blueprints/books')).status).toBe(200)
  })

  test('a draft request adds a usage row with its source and without an integration, and its prompt appears in no event', async () => {
    answerWith({ blueprints: [books] })
    await postDraft(draftRequest('Secretly quince.', { model: 'model-9' }))
    const [row] = (await admin.get('/ai/usage?limit=1')).body
    expect(row).toMatchObject({ integration: null, source, model: 'model-9', user: at.users.user, status: 'completed' })
    expect(JSON.stringify((await admin.get('/events?source=ai')).body)).not.toContain('quince')
  })

  test.each([
    ['only the list', JSON.stringify([books])],
    ['a single blueprint', JSON.stringify(books)],
    [
      'a code block within text',
      `Here you are:\n\`\`\`json\n${JSON.stringify({ blueprints: [books] })}\n\`\`\`\nEnjoy!`,
    ],
  ])('drafting accepts the reply of a model in any usual form: %s', async (_, text) => {
    answerWith(text)
    expect((await postDraft(draftRequest())).body.blueprints).toEqual([books])
    expect(openai.requests).toHaveLength(1)
  })

  const wrong: [string, unknown, string][] = [
    ['no JSON', 'I would rather not.', ''],
    ['broken JSON', '{"blueprints": [', ''],
    ['an object without blueprints', { tables: [] }, '/blueprints'],
    ['an invalid key', { blueprints: [{ ...books, key: 'Books!' }] }, '/blueprints/0/key'],
    [
      'an unknown type',
      { blueprints: [{ ...books, fields: [field('a', { type: 'colour' })] }] },
      '/blueprints/0/fields/0/type',
    ],
    [
      'a reserved field name',
      { blueprints: [books, { ...books, key: 'b', fields: [field('user')] }] },
      '/blueprints/1/fields/0/key',
    ],
    [
      'a bad pattern',
      { blueprints: [{ ...books, fields: [field('a', { pattern: '(' })] }] },
      '/blueprints/0/fields/0/pattern',
    ],
    [
      'a default that does not fit',
      { blueprints: [{ ...books, fields: [field('a', { default: 5 })] }] },
      '/blueprints/0/fields/0/default',
    ],
    [
      'a permission without a scope',
      { blueprints: [{ ...books, permissions: [{ operation: 'read' }] }] },
      '/blueprints/0/permissions/0',
    ],
    ['a bad formula', { blueprints: [{ ...books, computed: { title: '((' } }] }, '/blueprints/0/computed/title'],
    [
      'a relation to an unknown blueprint',
      { blueprints: [{ ...books, fields: [field('a', { type: 'relation', target: 'nothing' })] }] },
      '/blueprints/0/fields/0/target',
    ],
    ['a duplicate key', { blueprints: [books, books] }, '/blueprints/1/key'],
    [
      'more than 20 blueprints',
      { blueprints: Array.from({ length: 21 }, (_, n) => ({ ...books, key: `b${n}` })) },
      '/blueprints',
    ],
    ['a NUL character', { blueprints: [{ ...books, name: 'a\0b' }] }, ''],
  ]

  test.each(wrong)(
    'invalid drafts go back to the model once, and a second failure returns 502 AI_DRAFT_INVALID: %s',
    async (_, invalid, path) => {
      answerWith(invalid, { blueprints: [books] })
      const { status, body } = await postDraft(draftRequest())
      expect([status, body.blueprints]).toEqual([200, [books]])
      expect(body.usage.total_tokens).toBe(36)
      const [, again] = openai.requests
      expect(again!.body.messages[1].content).toBe('A library.')
      expect(again!.body.messages[0].content).toContain(`"path":"${path}`)
      answerWith(invalid, invalid)
      const refused = await postDraft(draftRequest())
      expect(statusAndCode(refused)).toEqual([502, 'AI_DRAFT_INVALID'])
      expect(refused.body.details[0]).toEqual({ path: expect.any(String), message: expect.any(String) })
      expect(refused.body.details.map((flaw: { path: string }) => flaw.path)).toContainEqual(
        expect.stringContaining(path),
      )
      expect(openai.requests).toHaveLength(4)
    },
  )

  test('drafted blueprints may refer to each other, to themselves and to existing blueprints', async () => {
    await at.made('/blueprints', { key: 'shelves', name: 'Shelves', fields: [field('place')] })
    const relationTo = (key: string, target: string) => field(key, { type: 'relation', target })
    const both = [
      {
        ...books,
        fields: [relationTo('author', 'authors'), relationTo('shelf', 'shelves'), relationTo('sequel', 'books')],
      },
      { ...books, key: 'authors', fields: [relationTo('best', 'books')] },
    ]
    answerWith({ blueprints: both })
    expect((await postDraft(draftRequest(), editor)).body.blueprints).toEqual(both)
  })

  test('the errors of a draft do not reveal blueprints that the caller may not read', async () => {
    await at.made('/blueprints', { key: 'secrets', name: 'Secrets', fields: [] })
    const referring = { blueprints: [{ ...books, fields: [field('a', { type: 'relation', target: 'secrets' })] }] }
    answerWith(referring, referring)
    expect((await postDraft(draftRequest())).body.details).toEqual([
      { path: '/blueprints/0/fields/0/target', message: 'There is no blueprint "secrets".' },
    ])
    answerWith(
      { blueprints: [{ ...books, key: 'secrets' }] },
      referring,
      { blueprints: [{ ...books, key: 'secrets' }] },
      referring,
    )
    expect((await postDraft(draftRequest())).status).toBe(200)
    openai.clear()
    answerWith(referring)
    expect((await postDraft(draftRequest(), editor)).status).toBe(200)
    const taken = { blueprints: [{ ...books, key: 'secrets' }] }
    answerWith(taken, taken)
    expect((await postDraft(draftRequest(), editor)).body.details[0].path).toBe('/blueprints/0/key')
  })

  test('create: true creates the drafts in the order of their relations, and answers 403 FORBIDDEN to users without the right', async () => {
    const relationTo = field('author', { type: 'relation', target: 'writers' })
    answerWith({
      blueprints: [
        { ...books, key: 'novels', fields: [relationTo] },
        { ...books, key: 'writers' },
      ],
    })
    const { status, body } = await postDraft(draftRequest('A library.', { create: true }), editor)
    expect([status, body.created.map(({ key }: { key: string }) => key)]).toEqual([200, ['writers', 'novels']])
    expect((await admin.get('/blueprints/novels')).body.fields[0]).toMatchObject(relationTo)
    openai.clear()
    expect(statusAndCode(await postDraft(draftRequest('x', { create: true })))).toEqual([403, 'FORBIDDEN'])
    expect(openai.requests).toEqual([])
  })

  test('create: true creates none of the drafts when their relations form a circle, and answers 400 INVALID_INPUT', async () => {
    const relationTo = (target: string) => [field('a', { type: 'relation', target })]
    const circle = [
      { ...books, key: 'first', fields: [] },
      { ...books, key: 'hens', fields: relationTo('eggs') },
      { ...books, key: 'eggs', fields: relationTo('hens') },
    ]
    answerWith({ blueprints: circle })
    expect(statusAndCode(await postDraft(draftRequest('x', { create: true }), editor))).toEqual([400, 'INVALID_INPUT'])
    for (const { key } of circle) expect((await admin.get(`/blueprints/${key}`)).status).toBe(404)
  })

  test('drafting is repeated without response_format when the provider rejects it with 400; other failures return 502 or 503', async () => {
    openai.reply({ status: 400 }, { text: JSON.stringify([books]) })
    expect((await postDraft(draftRequest())).body.blueprints).toEqual([books])
    expect(openai.requests.map(({ body }) => !!body.response_format)).toEqual([true, false])
    openai.reply({ status: 401 })
    expect(statusAndCode(await postDraft(draftRequest()))).toEqual([502, 'AI_UPSTREAM_ERROR'])
    openai.reply({ status: 429, headers: { 'retry-after': '9' } })
    const busy = await postDraft(draftRequest())
    expect([statusAndCode(busy), busy.headers.get('retry-after')]).toEqual([[503, 'AI_UPSTREAM_BUSY'], '9'])
  })
})

test('arbitrary replies of a model lead to a list of blueprints or to 502 AI_DRAFT_INVALID', async () => {
  const part = fc.oneof(fc.jsonValue(), fc.constant(books))
  const key = fc.constantFrom('key', 'name', 'fields', 'permissions', 'limitations', 'computed', 'dispatchers')
  const one = fc.dictionary(
    key,
    fc.oneof(fc.jsonValue(), fc.array(fc.dictionary(fc.constantFrom('key', 'type'), fc.jsonValue()))),
  )
  const change = one.map((more) => ({ ...books, ...more }))
  await checkProperty(
    60,
    fc.asyncProperty(
      fc.oneof(fc.jsonValue(), fc.record({ blueprints: fc.oneof(part, fc.array(fc.oneof(part, one, change))) })),
      async (reply) => {
        openai.clear()
        answerWith(reply, reply)
        const answer = await postDraft(draftRequest())
        if (answer.status === 200) expect(answer.body.blueprints).toBeArray()
        else expect(statusAndCode(answer)).toEqual([502, 'AI_DRAFT_INVALID'])
      },
    ),
  )
})

describe('a draft request', () => {
  test('a draft request whose client disconnects is aborted at the model and recorded as aborted', async () => {
    openai.reply({ hang: 0 })
    const ending = new AbortController()
    const headers = { 'x-api-key': at.tokens.user, 'content-type': 'application/json', host: `${at.id}.test` }
    const request = { method: 'POST', headers, body: JSON.stringify(draftRequest()), signal: ending.signal }
    const answer = handleRequest(new Request(`${at.origin}/api/ai/sources/${source}/blueprints`, request))
    await waitUntil(() => openai.requests.length)
    ending.abort()
    expect((await answer).status).toBe(400)
    await waitUntil(() => openai.left.length)
    expect(openai.requests).toHaveLength(1)
    expect((await admin.get('/ai/usage?limit=1')).body).toMatchObject([
      { status: 'aborted', integration: null, source },
    ])
  })

  test.each([
    ['no prompt', {}],
    ['an empty prompt', { prompt: '' }],
    ['a list as prompt', { prompt: ['x'] }],
    ['a create flag that is not a boolean', { prompt: 'x', create: 'yes' }],
  ])('a draft request with an invalid body is rejected with 400 INVALID_INPUT: %s', async (_, body) => {
    expect(statusAndCode(await postDraft(body))).toEqual([400, 'INVALID_INPUT'])
    expect(openai.requests).toEqual([])
  })

  test('a draft request gets 401 without credentials, and 403 without any of the roles that the source names', async () => {
    expect(statusAndCode(await postDraft(draftRequest(), anonymous))).toEqual([401, 'UNAUTHENTICATED'])
    const metadata = { apiUrl: openai.url, roles: ['designer'] }
    const { _id } = await at.made('/integration-sources', { name: 'few', kind: 'openai', metadata })
    expect(statusAndCode(await postDraft(draftRequest(), user, _id))).toEqual([403, 'FORBIDDEN'])
    expect(openai.requests).toEqual([])
    answerWith([books], [books])
    expect((await postDraft(draftRequest(), admin, _id)).status).toBe(200)
    await at.done(admin.put(`/users/${at.users.other}`, { roles: ['user', 'designer'] }))
    expect((await postDraft(draftRequest(), at.as('other'), _id)).status).toBe(200)
  })

  test('a draft request to an unknown source, or to one of another kind or tenant, gets 404 INTEGRATION_SOURCE_NOT_FOUND', async () => {
    const metadata = { url: 'https://stock.example.com' }
    const { _id } = await at.made('/integration-sources', { name: 'Stock', kind: 'http', metadata })
    for (const id of ['nothing', _id, '%00'])
      expect(statusAndCode(await postDraft(draftRequest(), admin, id)), id).toEqual([
        404,
        'INTEGRATION_SOURCE_NOT_FOUND',
      ])
    expect(statusAndCode(await postDraft(draftRequest(), (await createTestTenant()).as('admin')))).toEqual([
      404,
      'INTEGRATION_SOURCE_NOT_FOUND',
    ])
  })

  test('a draft request over a used-up budget is rejected with 429 BUDGET_EXCEEDED', async () => {
    const budgets = [{ scope: 'user', period: 'day', unit: 'tokens', limit: 1 }]
    await at.done(admin.put('/configurations/ai-configuration', { metadata: { budgets } }))
    expect(statusAndCode(await postDraft(draftRequest()))).toEqual([429, 'BUDGET_EXCEEDED'])
    await at.done(admin.put('/configurations/ai-configuration', { metadata: { budgets: [] } }))
  })
})

describe('the built-in echo source', () => {
  test('the echo source drafts exactly the blueprints of the prompt, and an invalid one gets 502 AI_DRAFT_INVALID', async () => {
    const drafted = { blueprints: [{ ...books, key: 'told' }] }
    expect((await postDraft(draftRequest(drafted), user, 'echo')).body.blueprints).toEqual(drafted.blueprints)
    expect((await postDraft(draftRequest(drafted.blueprints), user, 'echo')).body.blueprints).toEqual(
      drafted.blueprints,
    )
    const refused = await postDraft(draftRequest({ blueprints: [{ key: 'told' }] }), user, 'echo')
    expect(statusAndCode(refused)).toEqual([502, 'AI_DRAFT_INVALID'])
    expect(refused.body.details.map(({ path }: { path: string }) => path)).toContain('/blueprints/0/fields')
  })

  test('the echo source drafts an example for a prompt in plain words, and POST /blueprints accepts it', async () => {
    const own = await createTestTenant()
    const { status, body } = await own
      .as('user')
      .post('/ai/sources/echo/blueprints', draftRequest('A library, please.'))
    expect([status, body.blueprints.map(({ key }: { key: string }) => key)]).toEqual([200, ['authors', 'books']])
    for (const one of body.blueprints) expect((await own.as('editor').post('/blueprints', one)).status).toBe(201)
  })

  test('the echo source answers drafts with 404 INTEGRATION_SOURCE_NOT_FOUND when ATOLL_AI_ECHO is off', async () => {
    config.ATOLL_AI_ECHO = 'off'
    expect(statusAndCode(await postDraft(draftRequest(), user, 'echo'))).toEqual([404, 'INTEGRATION_SOURCE_NOT_FOUND'])
    config.ATOLL_AI_ECHO = 'on'
  })
})
