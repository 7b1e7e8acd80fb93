import { describe, expect, test } from 'bun:test'
import { house, refusal } from '../../house'
import { configure, FORBIDDEN, made, office } from './kit'

const set = (home: Awaited<ReturnType<typeof house>>, metadata: Record<string, unknown>) =>
  configure(home.tenant, 'workspace-configuration', metadata)
const make = (home: Awaited<ReturnType<typeof house>>, name: 'user' | 'editor' | 'admin', labels?: string[]) =>
  home.as(name).post('/workspaces', { name: 'Office', ...(labels && { labels }) })

describe('the configuration of workspaces', () => {
  test('says whose roles suffice to make one; admins always may', async () => {
    const home = await house()
    expect((await make(home, 'user')).status).toBe(201)
    await set(home, { creationPrivilegedRoles: ['plugin', 'boss'] })
    expect(refusal(await make(home, 'user'))).toEqual(FORBIDDEN)
    for (const name of ['editor', 'admin'] as const) expect((await make(home, name)).status).toBe(201)
    await set(home, { creationPrivilegedRoles: [] })
    expect((await make(home, 'user')).status).toBe(201)
  })

  test('says which labels there are; those that a workspace has already may stay', async () => {
    const home = await house()
    const { _id } = await made(home.as('user'), { labels: ['old'] })
    await set(home, { labels: ['pro', 'free'] })
    const answer = await make(home, 'user', ['pro', 'gold'])
    expect([refusal(answer), answer.body.message]).toEqual([[400, 'INVALID_INPUT'], expect.stringContaining('"gold"')])
    expect((await make(home, 'user', ['pro'])).status).toBe(201)
    const put = (labels: string[]) => home.as('user').put(`/workspaces/${_id}`, { labels })
    expect((await put(['old', 'free'])).body.labels).toEqual(['old', 'free'])
    expect((await put(['free'])).status).toBe(200)
    expect(refusal(await put(['free', 'old']))).toEqual([400, 'INVALID_INPUT'])
    expect((await home.as('user').put(`/workspaces/${_id}`, { name: 'New' })).status).toBe(200)
  })

  test('says whether one may be without', async () => {
    const home = await house()
    const { _id } = await made(home.as('user'))
    const put = (body: object) => home.as('user').put(`/workspaces/${_id}`, body)
    await set(home, { allowNonLabeledWorkspaces: false })
    for (const labels of [undefined, []])
      expect(refusal(await make(home, 'admin', labels))).toEqual([400, 'INVALID_INPUT'])
    expect((await make(home, 'user', ['any'])).status).toBe(201)
    // What was read before can be sent back.
    expect((await put({ name: 'New', labels: [] })).status).toBe(200)
    expect((await put({ labels: ['pro'] })).status).toBe(200)
    expect(refusal(await put({ labels: [] }))).toEqual([400, 'INVALID_INPUT'])
  })

  test('switches them off: nobody makes, joins or enters one, and nobody is in one', async () => {
    const home = await office()
    const { as, at, workspace } = home
    const email = `editor@${home.id}.test`
    await as('user').post(`${at}/invites`, { email })
    await as('user').post(`${at}/activate`)
    expect((await as('user').get('/me')).body.workspace._id).toBe(workspace)
    await set(home, { isActive: false })
    expect((await as('user').get('/me')).body.workspace).toBeNull()
    for (const answer of [
      await make(home, 'admin'),
      await as('other').post(`${at}/activate`),
      await as('editor').post('/invites', { workspace, kind: 'accept' }),
    ])
      expect(refusal(answer)).toEqual([403, 'WORKSPACES_INACTIVE'])
    expect((await as('user').get(at)).status).toBe(200)
    await set(home, { isActive: true })
    expect((await as('user').get('/me')).body.workspace._id).toBe(workspace)
  })

  test('counts as not set where it makes no sense, part by part', async () => {
    const home = await house()
    await set(home, { isActive: 'no', creationPrivilegedRoles: 'boss', labels: [5], allowNonLabeledWorkspaces: null })
    expect((await make(home, 'user', ['any'])).status).toBe(201)
    await set(home, { isActive: 5, creationPrivilegedRoles: ['boss'] })
    expect(refusal(await make(home, 'user'))).toEqual(FORBIDDEN)
  })

  test('is each tenant’s own', async () => {
    const [here, there] = [await house(), await house()]
    await set(here, { isActive: false })
    expect((await make(here, 'user')).status).toBe(403)
    expect((await make(there, 'user')).status).toBe(201)
  })
})

test('where sign-up is closed, nobody signs up, and those who have an account sign in', async () => {
  const { stranger, tenant } = await house()
  const person = { username: 'ada', password: 'correct horse' }
  expect((await stranger.post('/signup', person)).status).toBe(201)
  await configure(tenant, 'auth-configuration', { allowSignup: false })
  expect(refusal(await stranger.post('/signup', { ...person, username: 'bob' }))).toEqual([403, 'SIGNUP_CLOSED'])
  expect(refusal(await stranger.post('/signup', person))).toEqual([403, 'SIGNUP_CLOSED'])
  expect((await stranger.post('/signin', person)).status).toBe(200)
  await configure(tenant, 'auth-configuration', { allowSignup: true })
  expect((await stranger.post('/signup', { ...person, username: 'bob' })).status).toBe(201)
})
