import { beforeAll, describe, expect, test } from 'bun:test'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { type ApiClient, apiClient, callApi, fullAccessRules, statusAndCode } from '../test-tenant'
import { startTestServer } from './changes/stream-client'
import { createThingsFixture, identifiers } from './fixtures'

const NOT_FOUND = [404, 'ENTITY_NOT_FOUND']
const { listener } = startTestServer()

/** A user with entities in two workspaces and outside of them, and a token that is bound to the first. */
async function createFixture(permissions = fullAccessRules('user', 'user'), more: object = {}) {
  const fields = [
    { key: 'title', type: 'string' },
    { key: 'next', type: 'relation', target: 'things' },
  ]
  const own = await createThingsFixture(fields, permissions, { searchable: true, ...more })
  const user = own.as('user')
  const [north, south] = [
    (await user.post('/workspaces', { name: 'North' })).body._id as string,
    (await user.post('/workspaces', { name: 'South' })).body._id as string,
  ]
  const add = async (identifier: string, workspace?: string, body: object = {}) => {
    if (workspace) expect((await user.post(`/workspaces/${workspace}/activate`)).status).toBe(200)
    expect((await user.post(own.path, { identifier, title: 'one', ...body })).status).toBe(201)
  }
  await add('free')
  await add('s1', south)
  await add('n1', north, { next: 's1' })
  await add('n2')
  const { token } = await issueApiToken(own.tenant, own.users.user, { nickname: 'bound', workspace: north })
  const bound = apiClient(own.origin, { 'x-api-key': token })
  const seen = async (by: ApiClient, query = '') =>
    identifiers((await by.get(`${own.path}?$sort=identifier&${query}`)).body)
  return { ...own, user, bound, token, north, south, seen }
}

describe('a token that is bound to a workspace, with rules of the scope user', () => {
  let own: Awaited<ReturnType<typeof createFixture>>
  beforeAll(async () => {
    own = await createFixture()
  })

  test('lists, counts, searches, charts and exports only own entities of the workspace', async () => {
    const { bound, user, path, seen } = own
    for (const query of [
      '',
      'title=one',
      '$q=one',
      'title[$like]=%25n%25',
      'identifier[$in]=n1,n2,s1,free',
      '$sort=title',
    ])
      expect([query, await seen(bound, query)]).toEqual([query, ['n1', 'n2']])
    expect(await seen(user)).toEqual(['free', 'n1', 'n2', 's1'])
    expect((await bound.get(`${path}?$count=true`)).headers.get('x-total-count')).toBe('2')
    expect((await bound.get(`${path}?$count=true&title=one&$q=one`)).headers.get('x-total-count')).toBe('2')
    expect((await bound.get('/blueprints/things/charts/count')).body).toEqual({ count: 2 })
    expect((await bound.get('/blueprints/things/charts/pie?x=title')).body.series[0].data).toEqual([
      { name: 'one', value: 2 },
    ])
    expect((await bound.get(`${path}/export?format=ndjson`)).body.trim().split('\n')).toHaveLength(2)
  })

  test('reads, changes and removes no entity elsewhere, and populates none', async () => {
    const { bound, user, path } = own
    for (const name of ['s1', 'free']) {
      expect(statusAndCode(await bound.get(`${path}/${name}`))).toEqual(NOT_FOUND)
      expect(statusAndCode(await bound.put(`${path}/${name}`, { title: 'x' }))).toEqual(NOT_FOUND)
      expect(statusAndCode(await bound.delete(`${path}/${name}`))).toEqual(NOT_FOUND)
      const operations = [{ op: 'update', identifier: name, data: { title: 'x' } }]
      expect(statusAndCode(await bound.post(`${path}/batch`, { operations }))).toEqual(NOT_FOUND)
    }
    expect((await bound.put(`${path}/n2`, { title: 'one' })).status).toBe(200)
    expect((await bound.get(`${path}/n1?$populate=next`)).body.next).toBeString()
    expect((await user.get(`${path}/n1?$populate=next`)).body.next).toMatchObject({ title: 'one' })
  })

  test('imports over no entity elsewhere', async () => {
    const { token, origin, path, user } = own
    const lines = ['n2', 's1', 'free'].map((identifier) => JSON.stringify({ identifier, title: 'one' }))
    const { body } = await callApi('POST', `${origin}/api${path}/import?format=ndjson&mode=upsert`, {
      raw: lines.join('\n'),
      headers: { 'x-api-key': token },
    })
    expect(body).toMatchObject({ imported: 1, failed: 2 })
    expect((await user.get(`${path}/s1`)).status).toBe(200)
  })

  test('hears only changes of own entities of the workspace', async () => {
    const { path, user, token } = own
    await using follower = await listener({ ...own, tokens: { ...own.tokens, user: token } }, 'user')
    await user.put(`${path}/s1`, { title: 'one!' })
    await user.put(`${path}/free`, { title: 'one!' })
    await user.put(`${path}/n2`, { title: 'one!' })
    expect((await follower.next())?.data.identifier).toBe('n2')
    for (const name of ['s1', 'free', 'n2']) await user.put(`${path}/${name}`, { title: 'one' })
  })

  test('sees only threads of the workspace', async () => {
    const { as, bound, user, north, south } = own
    const agent = await as('admin').post('/integrations', {
      ...{ name: 'Agent', trigger: { kind: 'chat' }, roles: ['user'] },
      target: { kind: 'ai', sourceId: 'echo' },
    })
    expect([agent.status, agent.body.message]).toEqual([201, undefined])
    const threads: string[] = []
    for (const workspace of [north, south]) {
      await user.post(`/workspaces/${workspace}/activate`)
      threads.push((await user.post('/ai/threads', { integration: agent.body._id })).body._id)
    }
    expect((await bound.get('/ai/threads')).body.map(({ _id }: { _id: string }) => _id)).toEqual([threads[0]])
    expect((await user.get('/ai/threads')).body).toHaveLength(2)
    expect((await bound.get(`/ai/threads/${threads[1]}`)).status).toBe(404)
    expect((await bound.get(`/ai/threads/${threads[0]}`)).status).toBe(200)
  })

  test('removes all that it reaches by DELETE /all, and nothing else', async () => {
    const { bound, path, seen, user } = own
    expect((await bound.delete(`${path}/all?confirm=things`)).body).toEqual({ success: true, deletedCount: 2 })
    expect(await seen(user)).toEqual(['free', 's1'])
  })
})

test('a bound token reaches own and others’ entities of its workspace where a rule has the scope workspace, too', async () => {
  const { bound, seen, user } = await createFixture([
    ...fullAccessRules('user', 'user'),
    { operation: 'read', scope: 'workspace', roleBased: ['user'] } as never,
  ])
  expect(await seen(bound)).toEqual(['n1', 'n2'])
  expect(await seen(user)).toEqual(['free', 'n1', 'n2', 's1'])
})
