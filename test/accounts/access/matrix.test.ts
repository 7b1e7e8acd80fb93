import { afterAll, expect, spyOn, test } from 'bun:test'
import { createSession } from '../../../src/accounts/sessions'
import { requests } from './route-requests'
import { createTenantFixture, type Requester, routes, sendRequest, snapshotTenant } from './tenant-fixture'

/**
 * The callers. The outsider is a member of another workspace than the requested one; the plugin has no other role.
 * The last two are admins who impersonate the member and another admin.
 */
const callers = [
  ...(['anonymous', 'user', 'outsider', 'member', 'ws-admin', 'admin', 'plugin', 'as member', 'as admin'] as const),
]
type Caller = (typeof callers)[number]

/** The status that each caller gets at the routes of a group; `ok` stands for the status before the route. */
const table = `
                              anonymous  user   outsider  member  ws-admin  admin  plugin  as member  as admin

  everybody                           ok    ok         ok      ok        ok     ok      ok         ok        ok
    200 POST /api/signin
    201 POST /api/signup
    400 POST /api/setup
    200 POST /api/signin/link
    200 GET /api/signin/methods
    200 POST /api/signin/email
    400 POST /api/signin/email/code
    400 POST /api/signin/email/link
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
    303 POST /api/auth/:provider/callback
    200 POST /api/auth/callback
    200 GET /api/static/
    200 GET /api/static/:file
    200 GET /api/configurations/app-configuration
    200 GET /api/plans/public
    200 POST /api/coupons/validate
    400 POST /api/payments/webhooks/:providerKind

  signed-in users                    401    ok         ok      ok        ok     ok      ok         ok        ok
    200 GET /api/me/
    200 POST /api/me/
    200 POST /api/email/verification
    200 GET /api/workspaces/
    201 POST /api/workspaces/
    200 GET /api/invites
    200 POST /api/invites
    200 GET /api/time-zones
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
    201 POST /api/files/
    200 GET /api/files/
    200 GET /api/files/:id
    200 PUT /api/files/:id
    200 DELETE /api/files/:id
    200 POST /api/files/:id/token
    200 GET /api/files/:id/:name
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
    200 POST /api/ai/agents/:id/search
    200 GET /api/ai/v1/models
    200 GET /api/ai/v1/models/:model
    200 POST /api/ai/v1/chat/completions
    400 POST /api/ai/v1/embeddings
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

  payers                             401   403        403      ok       403     ok     403         ok        ok
    200 GET /api/subscriptions/:id
    200 GET /api/subscriptions/:id/price-preview
    200 PUT /api/subscriptions/:id/cancel
    200 PUT /api/checkout/:subscriptionId/cancel
    200 GET /api/invoices/:invoiceId

  users themselves                   401    ok         ok      ok        ok     ok      ok        403       403
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

  members themselves                 401   404        404      ok        ok     ok     404        403       403
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
    200 GET /api/blueprints/:key/entities/:identifier/history/
    200 GET /api/blueprints/:key/entities/export
    200 GET /api/blueprints/:key/entities/changes
    201 POST /api/blueprints/:key/entities/
    200 POST /api/blueprints/:key/entities/batch
    200 POST /api/blueprints/:key/entities/import
    200 POST /api/blueprints/:key/entities/:identifier/history/:version/restore
    200 PUT /api/blueprints/:key/entities/:identifier
    200 PATCH /api/blueprints/:key/entities/:identifier
    200 DELETE /api/blueprints/:key/entities/:identifier
    200 DELETE /api/blueprints/:key/entities/all
    200 GET /api/blueprints/:key/charts/:type
    200 GET /api/blueprints/:key/charts/count
    200 GET /api/blueprints/:key/charts/pie
    200 GET /api/blueprints/:key/charts/sum

  editors of blueprints              401   403        403     403       403     ok      ok        403        ok
    201 POST /api/blueprints/
    200 PUT /api/blueprints/:key
    200 PATCH /api/blueprints/:key
    200 DELETE /api/blueprints/:key
    200 GET /api/blueprints/:key/indexes
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
    200 GET /api/users/:id/signin-state
    200 DELETE /api/users/:id/sessions
    200 DELETE /api/users/:id/api-tokens
    200 DELETE /api/users/:id/totp
    200 DELETE /api/users/:id/passkeys
    200 GET /api/users/:id/encrypted
    200 POST /api/users/:id/encrypted
    200 GET /api/workspaces/:id/encrypted
    200 POST /api/workspaces/:id/encrypted
    200 GET /api/roles
    200 GET /api/mails
    200 GET /api/mails/templates
    200 POST /api/mails/templates/:name/preview
    200 POST /api/mails/templates/:name/test
    200 GET /api/installation
    200 GET /api/quotas
    200 GET /api/workspaces/all
    200 GET /api/blueprints/:key/permissions/explain
    200 GET /api/sites/
    201 PUT /api/sites/
    200 DELETE /api/sites/
    200 POST /api/sites/rollback
    200 GET /api/lambdas/
    200 GET /api/lambdas/runs
    200 GET /api/lambdas/:id
    201 POST /api/lambdas/
    200 PUT /api/lambdas/:id
    200 PATCH /api/lambdas/:id
    200 DELETE /api/lambdas/:id
    200 GET /api/lambdas/:id/versions
    200 POST /api/lambdas/:id/rollback
    200 POST /api/lambdas/:id/execute
    200 GET /api/lambdas/:id/logs
    200 GET /api/definitions/
    200 POST /api/definitions/diff
    200 POST /api/definitions/push
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
    200 GET /api/events/known
    200 GET /api/integration-sources/
    200 GET /api/integration-sources/:id
    201 POST /api/integration-sources/
    200 PUT /api/integration-sources/:id
    200 PATCH /api/integration-sources/:id
    200 DELETE /api/integration-sources/:id
    200 POST /api/integration-sources/status
    200 POST /api/integration-sources/:id/status
    200 GET /api/integrations/
    200 GET /api/jobs/failing
    200 POST /api/jobs/:id/retry
    200 GET /api/integrations/due-times
    200 GET /api/integrations/:id
    201 POST /api/integrations/
    200 PUT /api/integrations/:id
    200 PATCH /api/integrations/:id
    200 DELETE /api/integrations/:id
    200 GET /api/integrations/:id/runs
    200 POST /api/integrations/:id/runs/:runId/replay
    201 POST /api/ai/agents/
    200 GET /api/ai/sources/:sourceId/storage/
    200 GET /api/ai/sources/:sourceId/storage/:id/files
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
    200 POST /api/plans/:id/price-preview
    200 GET /api/coupons/
    200 GET /api/coupons/:id
    201 POST /api/coupons/
    200 PUT /api/coupons/:id
    200 DELETE /api/coupons/:id
    200 GET /api/subscriptions/workspaces
    200 GET /api/subscriptions/statistics
    200 PUT /api/subscriptions/:id/dynamic-amount
    200 PUT /api/subscriptions/:id/coupon
    200 GET /api/payments/configuration/
    200 PUT /api/payments/configuration/
    200 GET /api/payments/events/
    200 GET /api/payments/events/:id
    200 POST /api/payments/events/:id/replay
`

/** The expected statuses by route. */
const expected = new Map<string, { ok: number; statuses: Record<Caller, number> }>()
for (const group of table
  .trim()
  .split(/\n\n +/)
  .slice(1)) {
  const [rule = '', ...lines] = group.split('\n')
  const cells = rule.match(/(?<= )(ok|\d{3})\b/g) ?? []
  if (cells.length !== callers.length) throw new Error(`This rule does not list every caller: ${rule}`)
  for (const line of lines) {
    const [, status, name = ''] = /^ +(\d{3}) (\S+ \S+)$/.exec(line) ?? []
    const ok = Number(status)
    const all = callers.map((caller, n) => [caller, cells[n] === 'ok' ? ok : Number(cells[n])])
    expected.set(name, { ok, statuses: Object.fromEntries(all) })
  }
}

test('the access table lists exactly the routes of the API', () => {
  expect([...expected.keys()].sort()).toEqual(routes.map(({ name }) => name).sort())
})

// A cheap hash suffices here and takes a hundredth of the time.
const { hash } = Bun.password
const cheap = { algorithm: 'argon2id', memoryCost: 64, timeCost: 1 } as const
const hashing = spyOn(Bun.password, 'hash').mockImplementation((text) => hash(text, cheap))
afterAll(() => hashing.mockRestore())
const tenantFixture = await createTenantFixture()
const [plainUser, outsider, otherAdmin] = [
  await tenantFixture.someone(),
  await tenantFixture.someone(),
  await tenantFixture.someone(),
]
await tenantFixture.as('admin').put(`/users/${otherAdmin.id}`, { roles: ['admin'] })
await tenantFixture
  .as('editor')
  .post(`/workspaces/${tenantFixture.elsewhere}/members`, { userId: outsider.id, roles: ['member'] })

const { user, other, admin, editor } = tenantFixture.users
const identities: Record<Caller, [user: string, more?: Record<string, string>]> = {
  anonymous: [plainUser.id],
  user: [plainUser.id],
  outsider: [outsider.id],
  member: [other],
  'ws-admin': [user],
  admin: [admin],
  plugin: [editor],
  'as member': [admin, { 'x-impersonate-user': other, 'x-impersonate-workspace': tenantFixture.workspace }],
  'as admin': [admin, { 'x-impersonate-user': otherAdmin.id }],
}
const cookies = new Map<string, string>()

/** Returns the caller with the headers of a session. */
async function signInAs(caller: Caller): Promise<Requester> {
  const [user, more = {}] = identities[caller]
  const effectiveUser = more['x-impersonate-user'] ?? user
  const { email } = (await tenantFixture.as('admin').get(`/users/${effectiveUser}`)).body
  if (caller === 'anonymous') return { user: effectiveUser, email, headers: {} }
  const device = { userAgent: 'a browser', address: '192.0.2.1' }
  const cookie =
    cookies.get(caller) ??
    `atoll_${tenantFixture.id}=${(await createSession(tenantFixture.tenant, user, 'cookie', device)).key}`
  cookies.set(caller, cookie)
  return { user: effectiveUser, email, headers: { cookie, ...more } }
}

const prepareRequest = async (caller: Caller, route: (typeof routes)[number]) => {
  const requester = await signInAs(caller)
  const routeRequest = (await requests[route.name]?.(tenantFixture, requester)) ?? {}
  return async () => (await sendRequest(tenantFixture.origin, route, routeRequest, requester.headers)).status
}
const isOk = (status: number, route: (typeof routes)[number]) => status === expected.get(route.name)?.ok

test('a caller without access gets the listed status at every route, and nothing in the tenant changes', async () => {
  const refused: { name: string; caller: Caller; status: number; send: () => Promise<number> }[] = []
  for (const route of routes)
    for (const caller of callers) {
      const status = expected.get(route.name)!.statuses[caller]
      if (!isOk(status, route))
        refused.push({ name: route.name, caller, status, send: await prepareRequest(caller, route) })
    }
  const before = await snapshotTenant(tenantFixture)
  const differences: string[] = []
  for (const { name, caller, status, send } of refused) {
    const actual = await send()
    if (actual !== status) differences.push(`${name} by ${caller}: ${actual} for ${status}`)
  }
  expect(differences).toEqual([])
  expect(await snapshotTenant(tenantFixture)).toEqual(before)
})

test.each(routes)('a caller with access gets the listed status of success: $name', async (route) => {
  for (const caller of callers) {
    const status = expected.get(route.name)!.statuses[caller]
    if (!isOk(status, route)) continue
    const send = await prepareRequest(caller, route)
    expect(await send(), caller).toBe(status)
    // A route that ends the session makes the next one require a new session.
    if (/logout|cookie/.test(route.path)) cookies.delete(caller)
  }
})
