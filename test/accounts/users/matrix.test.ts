import { expect, test } from 'bun:test'
import { type Answer, type Client, client } from '../../house'
import { bearer, pairOf } from '../people'
import { type Office, office } from '../workspaces/kit'
import { as, made } from './kit'

/** Who asks. The last two are admins: one acts as a plain user, one as another admin. */
const callers = ['stranger', 'user', 'member', 'ws-admin', 'plugin', 'admin', 'as-user', 'as-admin'] as const
type Caller = (typeof callers)[number]

/** Everybody of the matrix in a fresh tenant, with a second admin, and one whom things are done to. */
async function everybody() {
  const home = await office()
  const signedIn = async (name: 'user' | 'other' | 'editor' | 'admin') =>
    client(home.origin, bearer((await pairOf(home, name)).token))
  const plain = await made(home, { username: 'plain' })
  const boss = await made(home, { username: 'boss', roles: ['admin'] })
  const { token } = await pairOf({ ...home, users: { ...home.users, user: plain._id } }, 'user')
  const admin = await signedIn('admin')
  const who: Record<Caller, Client> = {
    stranger: home.stranger,
    user: client(home.origin, bearer(token)),
    member: await signedIn('other'),
    'ws-admin': await signedIn('user'),
    plugin: await signedIn('editor'),
    admin,
    'as-user': as(admin, plain._id),
    'as-admin': as(admin, boss._id),
  }
  const victim = await made(home, { username: 'victim' })
  return { ...home, who, boss: boss._id as string, victim: `/users/${victim._id}` }
}
type Everybody = Office & Awaited<ReturnType<typeof everybody>>

type Row = [route: string, ask: (who: Client, home: Everybody) => Promise<Answer>, expected: number[]]
//                              stranger user member ws-admin plugin admin as-user as-admin
const rows: Row[] = [
  ['GET /users', (who) => who.get('/users'), [401, 403, 403, 403, 403, 200, 403, 200]],
  ['GET /users/stats', (who) => who.get('/users/stats'), [401, 403, 403, 403, 403, 200, 403, 200]],
  ['GET /users/:id', (who, { victim }) => who.get(victim), [401, 403, 403, 403, 403, 200, 403, 200]],
  ['GET /roles', (who) => who.get('/roles'), [401, 403, 403, 403, 403, 200, 403, 200]],
  ['POST /users', (who) => who.post('/users', { username: 'x' }), [401, 403, 403, 403, 403, 201, 403, 201]],
  [
    'PUT /users/:id',
    (who, { victim }) => who.put(victim, { roles: ['admin'] }),
    [401, 403, 403, 403, 403, 200, 403, 200],
  ],
  ['DELETE /users/:id', (who, { victim }) => who.delete(victim), [401, 403, 403, 403, 403, 200, 403, 200]],
  [
    'GET /users/:id/encrypted',
    (who, { victim }) => who.get(`${victim}/encrypted`),
    [401, 403, 403, 403, 403, 200, 403, 200],
  ],
  [
    'POST /users/:id/encrypted',
    (who, { victim }) => who.post(`${victim}/encrypted`, {}),
    [401, 403, 403, 403, 403, 200, 403, 200],
  ],
  ['GET /me as another', (who, { users }) => as(who, users.other).get('/me'), [401, 403, 403, 403, 403, 200, 200, 200]],
  ['GET /me', (who) => who.get('/me'), [401, 200, 200, 200, 200, 200, 200, 200]],
  ['POST /me', (who) => who.post('/me', { name: 'x' }), [401, 200, 200, 200, 200, 200, 200, 200]],
  ['POST /me, the username', (who) => who.post('/me', { username: 'y' }), [401, 200, 200, 200, 200, 200, 403, 403]],
  ['GET /me/sessions', (who) => who.get('/me/sessions'), [401, 200, 200, 200, 200, 200, 403, 403]],
  ['DELETE /me/sessions/:id', (who) => who.delete('/me/sessions/x'), [401, 404, 404, 404, 404, 404, 403, 403]],
  ['GET /me/api-tokens', (who) => who.get('/me/api-tokens'), [401, 200, 200, 200, 200, 200, 403, 403]],
  [
    'POST /me/api-tokens',
    (who) => who.post('/me/api-tokens', { nickname: 'x' }),
    [401, 201, 201, 201, 201, 201, 403, 403],
  ],
  ['DELETE /me/api-tokens/:id', (who) => who.delete('/me/api-tokens/x'), [401, 404, 404, 404, 404, 404, 403, 403]],
  ['POST /cookie/refresh', (who) => who.post('/cookie/refresh'), [401, 400, 400, 400, 400, 400, 403, 403]],
  ['POST /logout', (who) => who.post('/logout'), [401, 200, 200, 200, 200, 200, 403, 403]],
  [
    'POST /workspaces/:id/activate',
    (who, { at }) => who.post(`${at}/activate`),
    [401, 404, 200, 200, 404, 200, 403, 403],
  ],
]

let home = await everybody()

test.each(rows)(
  '%s answers each caller as it should; where it refuses, nothing has changed',
  async (route, ask, expected) => {
    const told: Record<string, number> = {}
    for (const caller of callers) {
      const state = async () => JSON.stringify((await home.as('admin').get('/users?sort=_id')).body)
      const before = await state()
      const { status } = await ask(home.who[caller], home)
      told[caller] = status
      if (status >= 400) expect(await state(), caller).toBe(before)
      // What was done is not there for the next one.
      else if (!route.startsWith('GET')) home = await everybody()
    }
    expect(told).toEqual(Object.fromEntries(callers.map((caller, n) => [caller, expected[n]!])))
  },
)
