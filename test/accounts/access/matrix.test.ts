import { afterAll, expect, spyOn, test } from 'bun:test'
import { createSession } from '../../../src/accounts/sessions'
import { requests } from './route-requests'
import { createTenantFixture, type Requester, routes, sendRequest, snapshotTenant } from './tenant-fixture'

/**
 * Who asks. The neighbour is a member of another workspace than the one that is asked for; the plugin has no other role.
 * The last two are admins: one acts as the member, one as another admin.
 */
const callers = [
  ...(['stranger', 'user', 'neighbour', 'member', 'ws-admin', 'admin', 'plugin', 'as member', 'as admin'] as const),
]
type Caller = (typeof callers)[number]

/** Who gets what they ask for (`ok`), by the rules of the house. Before each route stands what `ok` is for it. */
const table = `
                                stranger  user  neighbour  member  ws-admin  admin  plugin  as member  as admin

  everybody                           ok    ok         ok      ok        ok     ok      ok         ok        ok
    200 POST /api/signin
    201 POST /api/signup
    200 POST /api/signin/passkey/options
    200 POST /api/signin/passkey/
    200 POST /api/token/refresh
    200 POST /api/email/verify
    200 POST /api/email/revert
    200 POST /api/password/forgot
    200 POST /api/password/reset
    200 GET /api/auth/providers
    302 GET /api/auth/:provider
    400 GET /api/auth/:provider/callback
    200 POST /api/auth/callback
    200 GET /api/static/
    200 GET /api/static/:file
    200 GET /api/configurations/app-configuration
    200 GET /api/plans/public
    200 POST /api/coupons/validate
    400 POST /api/payments/webhooks/:providerKind

  whoever is signed in               401    ok         ok      ok        ok     ok      ok         ok        ok
    200 GET /api/me/
    200 POST /api/me/
    200 POST /api/email/verification
    200 GET /api/workspaces/
    201 POST /api/workspaces/
    200 GET /api/invites
    200 POST /api/invites
    200 GET /api/blueprints/
    200 GET /api/blueprints/:key
    200 GET /api/components/
    200 GET /api/components/:id
    200 GET /api/blocks/
    200 GET /api/blocks/:id
    201 POST /api/blocks/
    200 PUT /api/blocks/:id
    200 PATCH /api/blocks/:id
    200 DELETE /api/blocks/:id
    200 POST /api/mcp/
    201 POST /api/ai/sources/:sourceId/storage/
    201 POST /api/ai/sources/:sourceId/storage/upload
    200 POST /api/ai/sources/:sourceId/storage/clear
    202 GET /api/webhooks/:integrationId
    202 POST /api/webhooks/:integrationId
    202 PUT /api/webhooks/:integrationId
    202 DELETE /api/webhooks/:integrationId
    200 GET /api/ai/threads/
    200 GET /api/ai/threads/:id
    201 POST /api/ai/threads/
    200 DELETE /api/ai/threads/:id
    200 GET /api/ai/agents/
    200 GET /api/ai/agents/:id
    200 GET /api/ai/agents/:id/chat
    200 POST /api/ai/agents/:id/chat
    200 POST /api/ai/:integrationId/chat-completion/
    200 POST /api/ai/:integrationId/chat-completion/:threadId
    200 POST /api/ai/sources/:sourceId/chat-completion
    200 POST /api/ai/sources/:sourceId/chat-completion/plain
    200 POST /api/ai/sources/:sourceId/chat-completion/pages
    200 POST /api/ai/sources/:sourceId/chat-completion/integrations
    200 POST /api/ai/sources/:sourceId/blueprints
    200 GET /api/plans/:id
    200 GET /api/subscriptions/me
    200 GET /api/subscriptions/
    200 POST /api/subscriptions/
    200 POST /api/checkout/
    200 GET /api/invoices/

  who pays                           401   403        403      ok       403     ok     403         ok        ok
    200 GET /api/subscriptions/:id
    200 PUT /api/subscriptions/:id/cancel
    200 PUT /api/checkout/:subscriptionId/cancel
    200 GET /api/invoices/:invoiceId

  everybody for themselves           401    ok         ok      ok        ok     ok      ok        403       403
    200 POST /api/cookie/refresh
    200 POST /api/logout
    200 GET /api/me/sessions
    200 DELETE /api/me/sessions/:id
    200 GET /api/me/api-tokens
    201 POST /api/me/api-tokens
    200 DELETE /api/me/api-tokens/:id
    200 GET /api/me/totp
    200 POST /api/me/totp
    200 POST /api/me/totp/confirm
    200 DELETE /api/me/totp
    200 GET /api/me/passkeys/
    200 POST /api/me/passkeys/options
    201 POST /api/me/passkeys/
    200 PUT /api/me/passkeys/:id
    200 DELETE /api/me/passkeys/:id
    200 GET /api/me/identities/
    200 POST /api/me/identities/
    200 DELETE /api/me/identities/:id

  members of a workspace             401   404        404      ok        ok     ok     404         ok        ok
    200 GET /api/workspaces/:id
    200 GET /api/workspaces/:id/members/

  members for themselves             401   404        404      ok        ok     ok     404        403       403
    200 POST /api/workspaces/:id/activate

  admins of a workspace              401   404        404     403        ok     ok     404        403        ok
    200 PUT /api/workspaces/:id
    200 DELETE /api/workspaces/:id
    201 POST /api/workspaces/:id/members/
    200 PUT /api/workspaces/:id/members/:userId
    200 DELETE /api/workspaces/:id/members/:userId
    201 POST /api/workspaces/:id/invites
    200 DELETE /api/workspaces/:id/invites/:inviteId

  roles in a blueprint's rules       401    ok         ok      ok        ok     ok     403         ok        ok
    200 GET /api/blueprints/:key/entities/
    200 GET /api/blueprints/:key/entities/:identifier
    200 GET /api/blueprints/:key/entities/export
    200 GET /api/blueprints/:key/entities/changes
    201 POST /api/blueprints/:key/entities/
    200 POST /api/blueprints/:key/entities/batch
    200 POST /api/blueprints/:key/entities/import
    200 PUT /api/blueprints/:key/entities/:identifier
    200 PATCH /api/blueprints/:key/entities/:identifier
    200 DELETE /api/blueprints/:key/entities/:identifier
    200 DELETE /api/blueprints/:key/entities/all
    200 GET /api/blueprints/:key/charts/:type
    200 GET /api/blueprints/:key/charts/count
    200 GET /api/blueprints/:key/charts/pie
    200 GET /api/blueprints/:key/charts/sum

  those who make blueprints          401   403        403     403       403     ok      ok        403        ok
    201 POST /api/blueprints/
    200 PUT /api/blueprints/:key
    200 PATCH /api/blueprints/:key
    200 DELETE /api/blueprints/:key
    200 GET /api/blueprints/types.d.ts
    200 GET /api/blueprints/client.ts
    201 POST /api/components/
    200 POST /api/components/bulk
    200 PUT /api/components/:id
    200 PATCH /api/components/:id
    200 DELETE /api/components/:id
    201 POST /api/events/

  admins                             401   403        403     403       403     ok     403        403        ok
    200 GET /api/users/
    200 GET /api/users/stats
    200 GET /api/users/:id
    201 POST /api/users/
    200 PUT /api/users/:id
    200 DELETE /api/users/:id
    200 DELETE /api/users/:id/totp
    200 DELETE /api/users/:id/passkeys
    200 GET /api/users/:id/encrypted
    200 POST /api/users/:id/encrypted
    200 GET /api/workspaces/:id/encrypted
    200 POST /api/workspaces/:id/encrypted
    200 GET /api/roles
    200 GET /api/mails
    200 GET /api/workspaces/all
    200 GET /api/blueprints/:key/permissions/explain
    200 GET /api/lambdas/
    200 GET /api/lambdas/:id
    201 POST /api/lambdas/
    200 PUT /api/lambdas/:id
    200 PATCH /api/lambdas/:id
    200 DELETE /api/lambdas/:id
    200 GET /api/lambdas/:id/versions
    200 POST /api/lambdas/:id/rollback
    200 POST /api/lambdas/:id/execute
    200 GET /api/lambdas/:id/logs
    200 GET /api/configurations/
    200 GET /api/configurations/:key
    201 POST /api/configurations/
    200 PUT /api/configurations/:key
    200 PATCH /api/configurations/:key
    200 DELETE /api/configurations/:key
    200 PUT /api/configurations/app-configuration
    200 PATCH /api/configurations/app-configuration
    200 GET /api/events/
    200 GET /api/events/:eventId
    200 GET /api/events/count
    200 GET /api/events/sum
    200 GET /api/events/filter-options
    200 GET /api/integration-sources/
    200 GET /api/integration-sources/:id
    201 POST /api/integration-sources/
    200 PUT /api/integration-sources/:id
    200 PATCH /api/integration-sources/:id
    200 DELETE /api/integration-sources/:id
    200 POST /api/integration-sources/status
    200 POST /api/integration-sources/:id/status
    200 GET /api/integrations/
    200 GET /api/integrations/:id
    201 POST /api/integrations/
    200 PUT /api/integrations/:id
    200 PATCH /api/integrations/:id
    200 DELETE /api/integrations/:id
    200 GET /api/integrations/:id/runs
    200 POST /api/integrations/:id/runs/:runId/replay
    201 POST /api/ai/agents/
    200 PUT /api/ai/agents/:id
    200 PATCH /api/ai/agents/:id
    200 DELETE /api/ai/agents/:id
    200 GET /api/ai/usage/
    200 GET /api/plugins/
    200 GET /api/plugins/:id
    201 POST /api/plugins/
    200 PUT /api/plugins/:id
    200 PATCH /api/plugins/:id
    200 DELETE /api/plugins/:id
    409 POST /api/plugins/:id/reload
    200 POST /api/plugins/:id/rotate-secret
    201 POST /api/plugins/:id/token
    200 GET /api/plugins/:id/deliveries
    200 POST /api/plugins/:id/deliveries/:deliveryId/replay
    200 GET /api/plans/
    200 POST /api/plans/
    200 PUT /api/plans/:id
    200 DELETE /api/plans/:id
    200 GET /api/coupons/
    200 GET /api/coupons/:id
    201 POST /api/coupons/
    200 PUT /api/coupons/:id
    200 DELETE /api/coupons/:id
    200 GET /api/subscriptions/workspaces
    200 PUT /api/subscriptions/:id/dynamic-amount
    200 PUT /api/subscriptions/:id/coupon
    200 GET /api/payments/configuration/
    200 PUT /api/payments/configuration/
    200 GET /api/payments/events/
    200 GET /api/payments/events/:id
    200 POST /api/payments/events/:id/replay
`

/** What each caller is to be told at each route. */
const expected = new Map<string, { ok: number; statuses: Record<Caller, number> }>()
for (const group of table
  .trim()
  .split(/\n\n +/)
  .slice(1)) {
  const [rule = '', ...lines] = group.split('\n')
  const cells = rule.match(/(?<= )(ok|\d{3})\b/g) ?? []
  if (cells.length !== callers.length) throw new Error(`Not everybody is told of: ${rule}`)
  for (const line of lines) {
    const [, status, name = ''] = /^ +(\d{3}) (\S+ \S+)$/.exec(line) ?? []
    const ok = Number(status)
    const all = callers.map((caller, n) => [caller, cells[n] === 'ok' ? ok : Number(cells[n])])
    expected.set(name, { ok, statuses: Object.fromEntries(all) })
  }
}

test('the table has every route of the API, and no other', () => {
  expect([...expected.keys()].sort()).toEqual(routes.map(({ name }) => name).sort())
})

// As good as any where nobody guesses, at a hundredth of the time.
const { hash } = Bun.password
const cheap = { algorithm: 'argon2id', memoryCost: 64, timeCost: 1 } as const
const hashing = spyOn(Bun.password, 'hash').mockImplementation((text) => hash(text, cheap))
afterAll(() => hashing.mockRestore())
const at = await createTenantFixture()
const [plain, neighbour, boss] = [await at.someone(), await at.someone(), await at.someone()]
await at.as('admin').put(`/users/${boss.id}`, { roles: ['admin'] })
await at.as('editor').post(`/workspaces/${at.elsewhere}/members`, { userId: neighbour.id, roles: ['member'] })

const { user, other, admin, editor } = at.users
const people: Record<Caller, [user: string, more?: Record<string, string>]> = {
  stranger: [plain.id],
  user: [plain.id],
  neighbour: [neighbour.id],
  member: [other],
  'ws-admin': [user],
  admin: [admin],
  plugin: [editor],
  'as member': [admin, { 'x-impersonate-user': other, 'x-impersonate-workspace': at.workspace }],
  'as admin': [admin, { 'x-impersonate-user': boss.id }],
}
const cookies = new Map<string, string>()

/** Somebody as they are known by a session of theirs. */
async function signInAs(caller: Caller): Promise<Requester> {
  const [user, more = {}] = people[caller]
  const whose = more['x-impersonate-user'] ?? user
  const { email } = (await at.as('admin').get(`/users/${whose}`)).body
  if (caller === 'stranger') return { user: whose, email, headers: {} }
  const device = { userAgent: 'a browser', address: '192.0.2.1' }
  const cookie = cookies.get(caller) ?? `atoll_${at.id}=${(await createSession(at.tenant, user, 'cookie', device)).key}`
  cookies.set(caller, cookie)
  return { user: whose, email, headers: { cookie, ...more } }
}

const prepareRequest = async (caller: Caller, route: (typeof routes)[number]) => {
  const who = await signInAs(caller)
  const routeRequest = (await requests[route.name]?.(at, who)) ?? {}
  return async () => (await sendRequest(at.origin, route, routeRequest, who.headers)).status
}
const isOk = (status: number, route: (typeof routes)[number]) => status === expected.get(route.name)?.ok

test('who may not is told so, and nothing has changed', async () => {
  const refused: { name: string; caller: Caller; status: number; ask: () => Promise<number> }[] = []
  for (const route of routes)
    for (const caller of callers) {
      const status = expected.get(route.name)!.statuses[caller]
      if (!isOk(status, route))
        refused.push({ name: route.name, caller, status, ask: await prepareRequest(caller, route) })
    }
  const before = await snapshotTenant(at)
  const otherwise: string[] = []
  for (const { name, caller, status, ask } of refused) {
    const told = await ask()
    if (told !== status) otherwise.push(`${name} by ${caller}: ${told} for ${status}`)
  }
  expect(otherwise).toEqual([])
  expect(await snapshotTenant(at)).toEqual(before)
})

test.each(routes)('who may, may: $name', async (route) => {
  for (const caller of callers) {
    const status = expected.get(route.name)!.statuses[caller]
    if (!isOk(status, route)) continue
    const ask = await prepareRequest(caller, route)
    expect(await ask(), caller).toBe(status)
    // What ends a session ends it for the next route.
    if (/logout|cookie/.test(route.path)) cookies.delete(caller)
  }
})
