import { beforeAll, describe, expect, test } from 'bun:test'
import { nextPagePath } from '../entities/fixtures'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { createWorkspace } from './workspace-fixtures'

const home = await createTestTenant()
const { as, users, stranger } = home
const admin = as('admin')
const ids: Record<string, string> = {}
const searchWorkspaces = (query: Record<string, string>) => admin.get(`/workspaces/all?${new URLSearchParams(query)}`)
const toNames = (body: { name: string }[]) => body.map(({ name }) => name).sort()
const findNames = async (query: Record<string, string>) => toNames((await searchWorkspaces(query)).body)

beforeAll(async () => {
  const made1 = async (name: string, by: 'user' | 'other', labels: string[] = []) => {
    ids[name] = (await createWorkspace(as(by), { name, labels }))._id
  }
  await made1('Alpha', 'user', ['pro', 'eu'])
  await made1('Beta', 'user', ['free'])
  await made1('Gamma (old)', 'other', ['pro'])
  await made1('Ärger', 'other')
  await as('user').post(`/workspaces/${ids.Beta}/invites`, { email: 'Zoe@Example.test', name: 'Zoé Ström' })
  await as('user').post(`/workspaces/${ids.Beta}/members`, { userId: users.editor, roles: [] })
})

test('all workspaces of the tenant are shown to privileged callers, and to nobody else', async () => {
  const { status, body } = await admin.get('/workspaces/all?sort=created')
  expect([status, body]).toEqual([
    200,
    ['Alpha', 'Beta', 'Gamma (old)', 'Ärger'].map((name) => ({
      _id: ids[name],
      name,
      logo: null,
      labels: expect.any(Array),
      tenant: home.id,
    })),
  ])
  for (const name of ['user', 'editor'] as const)
    expect(statusAndCode(await as(name).get('/workspaces/all'))).toEqual([403, 'FORBIDDEN'])
  expect(statusAndCode(await stranger.get('/workspaces/all'))).toEqual([401, 'UNAUTHENTICATED'])
})

describe('are filtered', () => {
  test('by id', async () => {
    expect(await findNames({ _id: `${ids.Alpha}, ${ids.Beta},x` })).toEqual(['Alpha', 'Beta'])
    expect(await findNames({ _id: 'x' })).toEqual([])
  })

  test('by the users who are members', async () => {
    expect(await findNames({ 'members.user': users.user })).toEqual(['Alpha', 'Beta'])
    expect(await findNames({ 'members.user': `${users.editor},${users.other}` })).toEqual([
      'Beta',
      'Gamma (old)',
      'Ärger',
    ])
    expect(await findNames({ 'members.user': 'nobody' })).toEqual([])
  })

  test('by labels, of which one suffices', async () => {
    expect(await findNames({ labels: 'pro' })).toEqual(['Alpha', 'Gamma (old)'])
    expect(await findNames({ labels: 'eu,free' })).toEqual(['Alpha', 'Beta'])
    expect(await findNames({ labels: 'pr' })).toEqual([])
  })

  test('by a regular expression for the name, whatever the case', async () => {
    expect(await findNames({ name: '^a' })).toEqual(['Alpha'])
    expect(await findNames({ name: 'ÄRGER|beta$' })).toEqual(['Beta', 'Ärger'])
    expect(await findNames({ name: '\\(OLD\\)' })).toEqual(['Gamma (old)'])
    expect(await findNames({ name: 'm{2}a' })).toEqual(['Gamma (old)'])
    expect(await findNames({ name: 'x'.repeat(100) })).toEqual([])
  })

  test('by what the name or an invite contains', async () => {
    expect(await findNames({ q: 'ALPH' })).toEqual(['Alpha'])
    expect(await findNames({ q: 'zoe@example' })).toEqual(['Beta'])
    expect(await findNames({ q: 'zoé ström' })).toEqual(['Beta'])
    expect(await findNames({ q: '.*' })).toEqual([])
    expect(await findNames({ q: '(' })).toEqual(['Gamma (old)'])
  })

  test('by all of these at once; what is empty, or called undefined, is no filter', async () => {
    expect(await findNames({ 'members.user': users.user, labels: 'pro,free', name: 'a$', q: 'zoe' })).toEqual(['Beta'])
    expect(await findNames({ 'members.user': users.other, labels: 'eu' })).toEqual([])
    const none = { _id: '', 'members.user': '', labels: 'undefined', name: '', q: 'undefined', select: '' }
    expect(await findNames(none)).toHaveLength(4)
  })
})

test.each(['(', '[a', 'a{1001}', '(?=a)', '\\1', '(a{1000}){1000}', 'x'.repeat(101)])(
  'the pattern %s is refused',
  async (name) => {
    const answer = await searchWorkspaces({ name })
    expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
    expect(answer.body.details[0].path).toBe('name')
  },
)

test('a pattern that would take others for ever is tried in no time', async () => {
  const { as } = await createTestTenant()
  const { _id } = await createWorkspace(as('user'), { name: 'a'.repeat(200) })
  const those = async (name: string) => (await as('admin').get(`/workspaces/all?name=${encodeURIComponent(name)}`)).body
  for (const name of ['(a+)+$x', '(a|a)*b', '(a*)*(a*)*(a*)*!']) expect(await those(name)).toEqual([])
  expect(await those('^(a+)+$')).toMatchObject([{ _id }])
})

describe('select', () => {
  test('names the fields that are shown, by commas or spaces', async () => {
    const select = async (fields: string) => (await searchWorkspaces({ _id: ids.Beta!, select: fields })).body[0]
    expect(await select('name')).toEqual({ _id: ids.Beta, name: 'Beta' })
    expect(Object.keys(await select('labels, tenant'))).toEqual(['_id', 'labels', 'tenant'])
    expect(Object.keys(await select('_id'))).toEqual(['_id'])
    const whole = await select('name logo tenant labels members invites created updated')
    expect(whole).toMatchObject({
      members: [
        { user: users.user, roles: ['admin'], email: `user@${home.id}.test` },
        { user: users.editor, roles: [] },
      ],
      invites: [{ email: 'Zoe@Example.test' }],
    })
    expect((await searchWorkspaces({ _id: ids.Alpha!, select: 'invites' })).body).toEqual([
      { _id: ids.Alpha, invites: [] },
    ])
  })

  test.each(['password', 'name,emailKey', '__proto__', 'members.user', 'constructor'])(
    '%s is refused',
    async (select) => {
      expect(statusAndCode(await searchWorkspaces({ select }))).toEqual([400, 'INVALID_INPUT'])
    },
  )
})

test('pages go on where the last one ended, also of those that are looked at one by one', async () => {
  for (const filter of ['', '&name=a', '&q=a']) {
    const seen: string[] = []
    const total = (await admin.get(`/workspaces/all?limit=1&count=true${filter}`)).headers.get('x-total-count')
    for (let next: string | undefined = `/workspaces/all?limit=1&sort=name${filter}`; next; ) {
      const { body, headers } = await admin.get(next)
      seen.push(...toNames(body))
      next = nextPagePath(headers)
    }
    expect([filter, seen]).toEqual([filter, filter ? seen : ['Alpha', 'Beta', 'Gamma (old)', 'Ärger']])
    expect([new Set(seen).size, Number(total)]).toEqual([seen.length, seen.length])
  }
})

test('many workspaces are gone through to the end', async () => {
  const { tenant, as } = await createTestTenant()
  await tenant.write((tx) =>
    tx.executeMany(
      "insert into workspaces (_id, name, labels, created, updated) values (?, ?, '[]', 0, 0)",
      Array.from({ length: 1_300 }, (_, n) => [`w${n}`, `Number ${n}`]),
    ),
  )
  const list = await as('admin').get('/workspaces/all?name=%5B02468%5D%24&limit=1000&count=1')
  expect([list.body.length, list.headers.get('x-total-count')]).toEqual([650, '650'])
  const last = await as('admin').get('/workspaces/all?name=number&limit=100&page=13&sort=_id')
  expect([last.body.length, nextPagePath(last.headers)]).toEqual([100, undefined])
})
