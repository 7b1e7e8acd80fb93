import { describe, expect, test } from 'bun:test'
import { FORBIDDEN, TIME, UNAUTHENTICATED, USER_NOT_FOUND } from '../../expectations'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { createSignedInClient } from '../session-fixtures'
import { createUser } from './user-fixtures'

describe('/api/users/:id/signin-state', () => {
  test('an admin sees by what a user signs in, and how many sessions and API tokens the user has', async () => {
    const own = await createTestTenant()
    const admin = own.as('admin')
    const { _id } = await createUser(own, { username: 'grace', email: 'grace@x.test' })
    expect((await admin.get(`/users/${_id}/signin-state`)).body).toEqual({
      emailVerified: true,
      pendingEmail: null,
      password: false,
      secondFactor: false,
      passkeys: 0,
      providers: [],
      sessions: 0,
      apiTokens: 0,
      lastActive: null,
    })
    await createSignedInClient(own, 'user')
    const { body } = await admin.get(`/users/${own.users.user}/signin-state`)
    expect(body).toMatchObject({ sessions: 1, apiTokens: 1, lastActive: TIME })
  })

  test('an admin ends all sessions of a user and deletes their API tokens, both of which get 401 from then on', async () => {
    const own = await createTestTenant()
    const [admin, at] = [own.as('admin'), `/users/${own.users.user}`]
    const browser = await createSignedInClient(own, 'user')
    const program = own.as('user')
    expect((await browser.get('/me')).status).toBe(200)
    expect((await admin.delete(`${at}/sessions`)).body).toEqual({ success: true })
    expect(statusAndCode(await browser.get('/me'))).toEqual(UNAUTHENTICATED)
    expect((await program.get('/me')).status).toBe(200)
    expect((await admin.delete(`${at}/api-tokens`)).body).toEqual({ success: true })
    expect(statusAndCode(await program.get('/me'))).toEqual(UNAUTHENTICATED)
    expect((await admin.get(`${at}/signin-state`)).body).toMatchObject({ sessions: 0, apiTokens: 0, lastActive: null })
  })

  test('admins who end their own sessions keep the one that they use', async () => {
    const own = await createTestTenant()
    const [here, elsewhere] = [await createSignedInClient(own, 'admin'), await createSignedInClient(own, 'admin')]
    expect((await here.delete(`/users/${own.users.admin}/sessions`)).status).toBe(200)
    expect((await here.get('/me')).status).toBe(200)
    expect(statusAndCode(await elsewhere.get('/me'))).toEqual(UNAUTHENTICATED)
  })

  test('users and admins of other tenants get 403 or 404', async () => {
    const [own, other] = [await createTestTenant(), await createTestTenant()]
    const requests = [
      ['get', 'signin-state'],
      ['delete', 'sessions'],
      ['delete', 'api-tokens'],
    ] as const
    for (const [method, what] of requests) {
      const at = `/users/${own.users.user}/${what}`
      expect(statusAndCode(await own.as('user')[method](at))).toEqual(FORBIDDEN)
      expect(statusAndCode(await own.anonymous[method](at))).toEqual(UNAUTHENTICATED)
      expect(statusAndCode(await other.as('admin')[method](at))).toEqual(USER_NOT_FOUND)
    }
  })
})
