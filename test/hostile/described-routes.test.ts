import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import { app } from '../../src/app'
import { checkProperty, PROPERTY_TIMEOUT_MS } from '../property-runner'
import { type ApiClient, createTestTenant, fullAccessRules, withoutRateLimits } from '../test-tenant'
import { createRandom, createRequest, sendRequest } from './random-requests'

setDefaultTimeout(PROPERTY_TIMEOUT_MS)

// Streams never end by themselves, and the operator's routes concern the installation.
const routes = app.routes.filter(
  ({ path, method }) =>
    path.startsWith('/api/') && !/\/changes$|\/listen$/.test(path) && method !== 'ALL' && method !== 'WS',
)

let tenant: Awaited<ReturnType<typeof createTestTenant>>
let clients: Record<string, { origin: string; headers: Record<string, string> }>
let ids: string[]
/** What a parameter of a path mostly is, by the folder before it. */
let idByFolder: Record<string, string>
const unlimited = withoutRateLimits()
afterAll(() => unlimited[Symbol.dispose]())

/** Creates a tenant with something of many kinds, whose ids paths and bodies use. */
async function prepareTenant() {
  tenant = await createTestTenant()
  const admin: ApiClient = tenant.as('admin')
  const things = { key: 'things', name: 'Things', fields: [{ key: 'name', type: 'text' }] }
  const created = [
    await admin.post('/blueprints', { ...things, permissions: fullAccessRules('tenant', 'user') }),
    await admin.post('/blueprints/things/entities', { name: 'one' }),
    await admin.post('/workspaces', { name: 'Engines' }),
    await admin.post('/lambdas', { name: 'Greeting', code: 'export default () => 1' }),
    await admin.post('/plans', { name: 'Pro', monthlyPrice: 10, currency: 'EUR' }),
    await admin.post('/coupons', { code: 'SPRING', discountType: 'percentage', discountValue: 20 }),
    await admin.post('/ai/agents', { name: 'Helper', sourceId: 'echo' }),
    await admin.post('/plugins', { name: 'Mailer' }),
    await admin.post('/blocks', { name: 'footer', content: '<p>x</p>', contentType: 'html' }),
    await admin.post('/events', { source: 'shop', kind: 'order', eventName: 'placed' }),
  ]
  await admin.post('/configurations', { key: 'theme', metadata: { dark: true } })
  const createdIds = created.map(({ body }) => String(body._id ?? 'none'))
  ids = ['things', 'footer', ...Object.values(tenant.users), ...createdIds]
  const [, entity, workspaces, lambdas, plans, coupons, agents, plugins, blocks, events] = createdIds as string[]
  const named = { blueprints: 'things', entities: entity, users: tenant.users.user, configurations: 'theme' }
  idByFolder = { ...named, workspaces, lambdas, plans, coupons, agents, plugins, blocks, events } as typeof idByFolder
  const { origin, tokens } = tenant
  clients = {
    guest: { origin, headers: {} },
    user: { origin, headers: { 'x-api-key': tokens.user } },
    admin: { origin, headers: { 'x-api-key': tokens.admin } },
  }
}
beforeAll(prepareTenant)

async function sendRandomRequest(seed: number) {
  const random = createRandom(seed)
  const route = random.pick(routes)
  const caller = random.pick(['guest', 'user', 'user', 'user', 'admin', 'admin', 'admin', 'admin'])
  const { origin, headers } = clients[caller]!
  const request = createRequest(route, random, ids, (folder) => idByFolder[folder])
  const { problem } = await sendRequest(request, origin, headers)
  return problem && `${caller}: ${problem}`
}

test('random and hostile requests of guests, users and admins to every route get described answers and never 500', async () => {
  let sent = 0
  await checkProperty(
    600,
    fc.asyncProperty(fc.integer(), async (seed) => {
      // What requests delete would otherwise be missing for the others.
      if (++sent % 500 === 0) await prepareTenant()
      expect(await sendRandomRequest(seed)).toBe('')
    }),
  )
})
