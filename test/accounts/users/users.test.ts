import { describe, expect, test } from 'bun:test'
import { FORBIDDEN, ID, TIME, USER_NOT_FOUND } from '../../expectations'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { createWorkspace } from '../../workspaces/workspace-fixtures'
import { bearer, signInForTokens } from '../session-fixtures'
import { createUser } from './user-fixtures'

describe('/api/users', () => {
  test('an admin creates, reads, changes and deletes users with all fields that admins may set', async () => {
    const own = await createTestTenant()
    const admin = own.as('admin')
    const created = await admin.post('/users', {
      username: 'Grace',
      email: 'Grace@x.test',
      firstName: 'Grace',
      lastName: 'Hopper',
      birthDate: '1906-12-09',
      phone: '+1 555',
      profileImage: 'https://x.test/grace.png',
      roles: ['user', 'captain'],
      metadata: { ship: 'Missouri' },
      internalMetadata: { note: 'retired' },
    })
    const grace = {
      _id: ID,
      username: 'Grace',
      email: 'Grace@x.test',
      name: '',
      firstName: 'Grace',
      lastName: 'Hopper',
      fullName: 'Grace Hopper',
      profileImage: 'https://x.test/grace.png',
      birthDate: '1906-12-09',
      phone: '+1 555',
      roles: ['user', 'captain'],
      metadata: { ship: 'Missouri' },
      internalMetadata: { note: 'retired' },
      workspace: null,
      created: TIME,
    }
    expect([created.status, created.body]).toEqual([201, grace])

    const at = `/users/${created.body._id}`
    expect((await admin.get(at)).body).toEqual(created.body)
    const changed = await admin.put(at, { phone: null, metadata: { rank: 1 }, internalMetadata: { note: null } })
    expect([changed.status, changed.body]).toEqual([
      200,
      { ...grace, phone: null, metadata: { ship: 'Missouri', rank: 1 }, internalMetadata: { note: null } },
    ])
    const removed = await admin.delete(at)
    expect([removed.status, removed.body]).toEqual([200, { success: true }])
    for (const answer of [await admin.get(at), await admin.put(at, {}), await admin.delete(at)])
      expect(statusAndCode(answer)).toEqual(USER_NOT_FOUND)
  })

  test('PUT /api/users/:id with an unchanged user changes nothing, and a computed fullName follows its parts', async () => {
    const own = await createTestTenant()
    const admin = own.as('admin')
    const { _id } = await createUser(own, { username: 'plain', firstName: 'Ada', lastName: 'L' })
    const before = (await admin.get(`/users/${_id}`)).body
    expect((await admin.put(`/users/${_id}`, before)).body).toEqual(before)
    // A computed fullName stays computed.
    expect((await admin.put(`/users/${_id}`, { ...before, lastName: 'Lovelace' })).body.fullName).toBe('Ada Lovelace')
    expect((await admin.put(`/users/${_id}`, { fullName: 'Countess' })).body.fullName).toBe('Countess')
    expect((await admin.put(`/users/${_id}`, { fullName: null })).body.fullName).toBe('Ada Lovelace')
  })

  test('responses never contain passwords, and users do not see their own internalMetadata', async () => {
    const own = await createTestTenant()
    const { _id } = await createUser(own, {
      username: 'plain',
      password: 'correct-horse',
      internalMetadata: { risk: 'high' },
    })
    const [listed, one] = [await own.as('admin').get('/users'), await own.as('admin').get(`/users/${_id}`)]
    for (const { body } of [listed, one]) {
      expect(JSON.stringify(body)).toContain('risk')
      expect(JSON.stringify(body)).not.toMatch(/password|argon2|horse|hash/i)
    }
    const signed = await own.anonymous.post('/signin', {
      username: 'plain',
      password: 'correct-horse',
      authType: 'oauth',
    })
    const self = own.anonymous.with(bearer(signed.body.payload.token))
    for (const answer of [signed, await self.get('/me'), await self.post('/me', { firstName: 'P' })]) {
      expect(answer.status).toBe(200)
      expect(JSON.stringify(answer.body)).not.toMatch(/internal|risk/)
    }
  })

  test('a taken username or address gets 409 in any case, even in simultaneous requests', async () => {
    const own = await createTestTenant()
    const admin = own.as('admin')
    const { _id } = await createUser(own, { username: 'Grace', email: 'grace@x.test' })
    for (const [body, code] of [
      [{ username: 'GRACE' }, 'USERNAME_EXISTS'],
      [{ username: 'grace@X.test' }, 'USERNAME_EXISTS'],
      [{ username: 'other2', email: 'GRACE@x.test' }, 'EMAIL_EXISTS'],
    ] as const)
      expect(statusAndCode(await admin.post('/users', body))).toEqual([409, code])
    expect(statusAndCode(await admin.put(`/users/${_id}`, { username: 'ADMIN' }))).toEqual([409, 'USERNAME_EXISTS'])
    expect(statusAndCode(await admin.put(`/users/${_id}`, { email: `user@${own.id}.test` }))).toEqual([
      409,
      'EMAIL_EXISTS',
    ])
    // Their own username and address are no conflict.
    expect((await admin.put(`/users/${_id}`, { username: 'GRACE', email: 'Grace@x.test' })).status).toBe(200)
    const twice = await Promise.all([1, 2, 3].map(() => admin.post('/users', { username: 'same' })))
    expect(twice.map(({ status }) => status).sort()).toEqual([201, 409, 409])
  })

  test('an invalid user gets 400 INVALID_INPUT with the path of the field', async () => {
    const own = await createTestTenant()
    const admin = own.as('admin')
    const wrong: [object, string][] = [
      [{}, '/username'],
      [{ username: '' }, '/username'],
      [{ username: '\u200b' }, '/username'],
      [{ username: 'x', email: 'nothing' }, '/email'],
      [{ username: 'x', password: 'short' }, '/password'],
      [{ username: 'x', password: 'x'.repeat(257) }, '/password'],
      [{ username: 'x', birthDate: '2026-02-30' }, '/birthDate'],
      [{ username: 'x', roles: 'admin' }, '/roles'],
      [{ username: 'x', roles: ['a,b'] }, '/roles/0'],
      [{ username: 'x', roles: ['a', 'a'] }, '/roles'],
      [{ username: 'x', profileImage: 'javascript:alert(1)' }, '/profileImage'],
      [{ username: 'x', metadata: { long: 'x'.repeat(70_000) } }, '/metadata'],
      [{ username: 'x', internalMetadata: { long: 'x'.repeat(70_000) } }, '/internalMetadata'],
    ]
    for (const [body, path] of wrong) {
      const answer = await admin.post('/users', body)
      expect(statusAndCode(answer), path).toEqual([400, 'INVALID_INPUT'])
      expect(
        answer.body.details.map((flaw: { path: string }) => flaw.path),
        path,
      ).toContain(path)
      if (path === '/username') continue
      const { username: _, ...change } = body as { username?: string }
      expect(statusAndCode(await admin.put(`/users/${own.users.user}`, change)), path).toEqual([400, 'INVALID_INPUT'])
    }
    expect((await admin.get('/users?count=true')).headers.get('x-total-count')).toBe('4')
  })

  test('an unknown user ID gets 404 USER_NOT_FOUND', async () => {
    const admin = (await createTestTenant()).as('admin')
    for (const id of ['x', '%00', '%ff', 'null', '0'.repeat(300), "'--", '..%2f', crypto.randomUUID()])
      for (const answer of [
        await admin.get(`/users/${id}`),
        await admin.put(`/users/${id}`, { name: 'x' }),
        await admin.delete(`/users/${id}`),
      ])
        expect(statusAndCode(answer), id).toEqual(USER_NOT_FOUND)
  })

  test('users and roles are accessible to admins only; others get 403 and anonymous requests 401', async () => {
    const { as, anonymous, users } = await createTestTenant()
    for (const caller of ['user', 'editor'] as const)
      for (const answer of [
        await as(caller).get('/users'),
        await as(caller).get(`/users/${users[caller]}`),
        await as(caller).get('/users/stats'),
        await as(caller).get('/roles'),
        await as(caller).post('/users', { nonsense: true }),
        await as(caller).put(`/users/${users[caller]}`, { roles: ['admin'] }),
        await as(caller).delete(`/users/${users[caller]}`),
      ])
        expect(statusAndCode(answer)).toEqual(FORBIDDEN)
    expect((await anonymous.get('/users')).status).toBe(401)
    expect((await anonymous.post('/users', {})).status).toBe(401)
  })

  test('a user of another tenant gets 404 USER_NOT_FOUND and appears in no list', async () => {
    const [ownTenant, otherTenant] = [await createTestTenant(), await createTestTenant()]
    const { _id } = await createUser(ownTenant, { username: 'grace', roles: ['captain'] })
    const admin = otherTenant.as('admin')
    for (const answer of [
      await admin.get(`/users/${_id}`),
      await admin.put(`/users/${_id}`, { name: 'x' }),
      await admin.delete(`/users/${_id}`),
    ])
      expect(statusAndCode(answer)).toEqual(USER_NOT_FOUND)
    expect((await admin.get(`/users?_id=${_id}`)).body).toEqual([])
    expect((await admin.get('/users?username=grace')).body).toEqual([])
    expect((await admin.get('/roles')).body).not.toContain('captain')
    expect((await admin.get('/users/stats')).body.total).toBe(4)
    // Usernames are unique within a tenant only.
    expect((await admin.post('/users', { username: 'grace' })).status).toBe(201)
    expect((await ownTenant.as('admin').get(`/users/${_id}`)).body.name).toBe('')
  })
})

describe('a password that an admin sets', () => {
  test('a password set by an admin allows sign-in and ends the sessions of the user, but keeps their API tokens', async () => {
    const own = await createTestTenant()
    const pair = await signInForTokens(own, 'user')
    const before = own.anonymous.with(bearer(pair.token))
    expect((await before.get('/me')).status).toBe(200)
    expect((await own.as('admin').put(`/users/${own.users.user}`, { password: 'battery-staple' })).status).toBe(200)
    expect((await before.get('/me')).status).toBe(401)
    expect((await own.anonymous.post('/token/refresh', { refreshToken: pair.refreshToken })).status).toBe(401)
    expect((await own.as('user').get('/me')).status).toBe(200)
    expect((await own.anonymous.post('/signin', { username: 'user', password: 'battery-staple' })).status).toBe(200)
  })

  test('an admin who sets their own password keeps the current session and loses the others', async () => {
    const own = await createTestTenant()
    const [here, there] = [await signInForTokens(own, 'admin'), await signInForTokens(own, 'admin')]
    const self = own.anonymous.with(bearer(here.token))
    expect((await self.put(`/users/${own.users.admin}`, { password: 'battery-staple' })).status).toBe(200)
    expect((await self.get('/me')).status).toBe(200)
    expect((await own.anonymous.with(bearer(there.token)).get('/me')).status).toBe(401)
  })
})

describe('deletion of a user', () => {
  test('deleting a user ends their sessions, tokens and memberships at once and keeps their workspaces', async () => {
    const own = await createTestTenant()
    const admin = own.as('admin')
    const pair = await signInForTokens(own, 'user')
    const session = own.anonymous.with(bearer(pair.token))
    const workspace = await createWorkspace(own.as('user'))
    const at = `/workspaces/${workspace._id}`
    await admin.post(`${at}/members`, { userId: own.users.other, roles: ['member'] })
    await admin.post(`/users/${own.users.user}/encrypted`, { iban: 'x' })
    for (const client of [session, own.as('user')]) expect((await client.get('/me')).status).toBe(200)

    expect((await admin.delete(`/users/${own.users.user}`)).status).toBe(200)
    for (const client of [session, own.as('user')]) expect((await client.get('/me')).status).toBe(401)
    expect((await own.anonymous.post('/token/refresh', { refreshToken: pair.refreshToken })).status).toBe(401)
    expect((await own.tenant.db.query("select count(*) from sealed where purpose = 'user'"))[0]).toEqual([0])
    // The last admin of a workspace may be deleted; an admin of the tenant can appoint another.
    const remaining = (await admin.get(at)).body
    expect(remaining.members.map(({ user }: { user: string }) => user)).toEqual([own.users.other])
    expect((await admin.put(`${at}/members/${own.users.other}`, { roles: ['admin'] })).status).toBe(200)
    // The username is available again, for a different user.
    const again = await createUser(own, { username: 'user' })
    expect(again._id).not.toBe(own.users.user)
    expect((await admin.get(`/users/${again._id}/encrypted`)).body).toBeNull()
  })

  test('a user who is deleted during sign-ins keeps no session', async () => {
    const own = await createTestTenant()
    const { _id } = await createUser(own, { username: 'grace', password: 'correct-horse' })
    const tries = Promise.all(
      [1, 2, 3, 4].map(() => own.anonymous.post('/signin', { username: 'grace', password: 'correct-horse' })),
    )
    expect((await own.as('admin').delete(`/users/${_id}`)).status).toBe(200)
    for (const { status } of await tries) expect(status).toBeOneOf([200, 401])
    const remaining = await own.tenant.db.query('select count(*) from sessions where "user" = ?', [_id])
    expect(Number(remaining[0]![0])).toBe(0)
  })
})
