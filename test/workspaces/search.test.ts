import { beforeAll, describe, expect, test } from 'bun:test'
import { nextPagePath } from '../entities/fixtures'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { createWorkspace } from './workspace-fixtures'

const home = await createTestTenant()
const { as, users, anonymous } = home
const admin = as('admin')
const ids: Record<string, string> = {}
const searchWorkspaces = (query: Record<string, string>) => admin.get(`/workspaces/all?${new URLSearchParams(query)}`)
const toNames = (body: { name: string }[]) => body.map(({ name }) => name).sort()
const findNames = async (query: Record<string, string>) => toNames((await searchWorkspaces(query)).body)

beforeAll(async () => {
  const createNamed = async (name: string, by: 'user' | 'other', labels: string[] = []) => {
    ids[name] = (await createWorkspace(as(by), { name, labels }))._id
  }
  await createNamed('Alpha', 'user', ['pro', 'eu'])
  await createNamed('Beta', 'user', ['free'])
  await createNamed('Gamma (old)', 'other', ['pro'])
  await createNamed('Ärger', 'other')
  await as('user').post(`/workspaces/${ids.Beta}/invites`, { email: 'Zoe@Example.test', name: 'Zoé Ström' })
  await as('user').post(`/workspaces/${ids.Beta}/members`, { userId: users.editor, roles: [] })
})

test('a search by a costly pattern lets other work of the event loop run between the names', async () => {
  const { tenant, as } = await createTestTenant()
  const name = 'ab'.repeat(100)
  await tenant.write((tx) =>
    tx.executeMany(
      'insert into workspaces (_id, name, labels, created, updated) values (?, ?, ?, ?, ?)',
      Array.from({ length: 20 }, () => [Bun.randomUUIDv7(), name, '[]', 0, 0]),
    ),
  )
  let turns = 0
  const counting = setInterval(() => turns++)
  const search = new URLSearchParams({ name: '([ab]{0,30}){30}c' })
  const { status, body } = await as('admin').get(`/workspaces/all?${search}`)
  clearInterval(counting)
  expect([status, body]).toEqual([200, []])
  expect(turns).toBeGreaterThan(5)
})

test('a search finds the workspaces, members and invites of more workspaces than are read at once', async () => {
  const own = await createTestTenant()
  for (let n = 0; n < 12; n++) {
    const { _id } = await createWorkspace(own.as('user'), { name: `Team ${n}` })
    await own.as('user').post(`/workspaces/${_id}/invites`, { email: `person${n}@x.test` })
  }
  const select = 'select=name,members,invites&sort=name'
  const { body } = await own.as('admin').get(`/workspaces/all?q=person1&${select}`)
  expect(body).toMatchObject(
    [1, 10, 11].map((n) => ({
      name: `Team ${n}`,
      invites: [{ email: `person${n}@x.test` }],
      members: [{ user: own.users.user }],
    })),
  )
})

test('GET /api/workspaces/all lists all workspaces of the tenant to admins; others get 403 and anonymous requests 401', async () => {
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
  expect(statusAndCode(await anonymous.get('/workspaces/all'))).toEqual([401, 'UNAUTHENTICATED'])
})

describe('filters of GET /api/workspaces/all', () => {
  test('the filter _id selects workspaces by ID', async () => {
    expect(await findNames({ _id: `${ids.Alpha}, ${ids.Beta},x` })).toEqual(['Alpha', 'Beta'])
    expect(await findNames({ _id: 'x' })).toEqual([])
  })

  test('the filter members.user selects workspaces by their members', async () => {
    expect(await findNames({ 'members.user': users.user })).toEqual(['Alpha', 'Beta'])
    expect(await findNames({ 'members.user': `${users.editor},${users.other}` })).toEqual([
      'Beta',
      'Gamma (old)',
      'Ärger',
    ])
    expect(await findNames({ 'members.user': 'nobody' })).toEqual([])
  })

  test('the filter labels selects workspaces with at least one of the labels', async () => {
    expect(await findNames({ labels: 'pro' })).toEqual(['Alpha', 'Gamma (old)'])
    expect(await findNames({ labels: 'eu,free' })).toEqual(['Alpha', 'Beta'])
    expect(await findNames({ labels: 'pr' })).toEqual([])
  })

  test('the filter name selects workspaces by a case-insensitive regular expression', async () => {
    expect(await findNames({ name: '^a' })).toEqual(['Alpha'])
    expect(await findNames({ name: 'ÄRGER|beta$' })).toEqual(['Beta', 'Ärger'])
    expect(await findNames({ name: '\\(OLD\\)' })).toEqual(['Gamma (old)'])
    expect(await findNames({ name: 'm{2}a' })).toEqual(['Gamma (old)'])
    expect(await findNames({ name: 'x'.repeat(100) })).toEqual([])
  })

  test('the filter q selects workspaces by text in their name or invites', async () => {
    expect(await findNames({ q: 'ALPH' })).toEqual(['Alpha'])
    expect(await findNames({ q: 'zoe@example' })).toEqual(['Beta'])
    expect(await findNames({ q: 'zoé ström' })).toEqual(['Beta'])
    expect(await findNames({ q: '.*' })).toEqual([])
    expect(await findNames({ q: '(' })).toEqual(['Gamma (old)'])
  })

  test('all filters combine, and a filter that is empty or undefined is ignored', async () => {
    expect(await findNames({ 'members.user': users.user, labels: 'pro,free', name: 'a$', q: 'zoe' })).toEqual(['Beta'])
    expect(await findNames({ 'members.user': users.other, labels: 'eu' })).toEqual([])
    const none = { _id: '', 'members.user': '', labels: 'undefined', name: '', q: 'undefined', select: '' }
    expect(await findNames(none)).toHaveLength(4)
  })
})

test.each(['(', '[a', 'a{1001}', '(?=a)', '\\1', '(a{1000}){1000}', 'x'.repeat(101)])(
  'the filter name rejects the pattern %s with 400 INVALID_INPUT',
  async (name) => {
    const answer = await searchWorkspaces({ name })
    expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
    expect(answer.body.details[0].path).toBe('name')
  },
)

test('the filter name accepts regular expressions that backtrack exponentially in other engines', async () => {
  const { as } = await createTestTenant()
  const { _id } = await createWorkspace(as('user'), { name: 'a'.repeat(200) })
  const findByPattern = async (name: string) =>
    (await as('admin').get(`/workspaces/all?name=${encodeURIComponent(name)}`)).body
  for (const name of ['(a+)+$x', '(a|a)*b', '(a*)*(a*)*(a*)*!']) expect(await findByPattern(name)).toEqual([])
  expect(await findByPattern('^(a+)+$')).toMatchObject([{ _id }])
})

describe('select in GET /api/workspaces/all', () => {
  test('select returns the named fields, separated by commas or spaces', async () => {
    const select = async (fields: string) => (await searchWorkspaces({ _id: ids.Beta!, select: fields })).body[0]
    expect(await select('name')).toEqual({ _id: ids.Beta, name: 'Beta' })
    expect(Object.keys(await select('labels, tenant'))).toEqual(['_id', 'labels', 'tenant'])
    expect(Object.keys(await select('_id'))).toEqual(['_id'])
    const allFields = await select('name logo tenant labels members invites created updated')
    expect(allFields).toMatchObject({
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
    'select rejects %s with 400 INVALID_INPUT',
    async (select) => {
      expect(statusAndCode(await searchWorkspaces({ select }))).toEqual([400, 'INVALID_INPUT'])
    },
  )
})

test('pages of a filtered list neither repeat nor omit workspaces', async () => {
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

test('a filter over 1,300 workspaces returns every match and the right count', async () => {
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
