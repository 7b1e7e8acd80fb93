import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { app } from '../../src/app'
import { config } from '../../src/config'
import { type RouteRequest, sendRequest } from '../accounts/access/tenant-fixture'
import { freshTarget } from '../backups/fixtures'
import { callApi, createTestTenant } from '../test-tenant'
import { waitUntil } from '../wait-until'
import { document, findMismatch } from './described-answers'
import { type DescribedOperation, exampleRequest, optionalParameters } from './example-requests'

setDefaultTimeout(120_000)

const TOKEN = 'the-operator-token-of-the-examples'
const headers = { authorization: `Bearer ${TOKEN}` }
const ORIGIN = 'http://localhost'
const operator = (method: string, path: string, body?: unknown) =>
  callApi(method, `${ORIGIN}/operator${path}`, { headers, body })

const paths = document.paths as unknown as Record<string, Record<string, DescribedOperation>>
const routes = app.routes
  .filter(({ path, hooks }) => !path.startsWith('/api/') && !hooks.detail?.hide)
  .map(({ method, path }) => ({
    method,
    path,
    operation: paths[path.replace(/(.)\/$/, '$1').replace(/:(\w+)/g, '{$1}')]![method.toLowerCase()]!,
  }))

/** The operations whose example is not sent here, and why. */
const EXCEPTIONS: Record<string, string> = {
  moveTenant: 'needs a server of PostgreSQL that tenants can be moved to; test/postgres moves some',
  renewCertificate: 'needs an authority for certificates; test/tls orders some',
}

/** Returns a task when it has ended. */
const finish = async (task: { _id: string }) =>
  waitUntil(
    async () => (await operator('GET', `/tasks/${task._id}`)).body,
    ({ status }) => status !== 'running',
    60_000,
  )

/** What stands for something of this installation in the examples. */
const OWN_REQUESTS: Record<string, () => Promise<RouteRequest>> = {
  createTenant: async () => {
    await operator('DELETE', '/tenants/acme?confirm=acme')
    return {}
  },
  getTask: async () => ({ path: { id: (await operator('GET', '/tasks')).body[0]._id } }),
  removeOperatorToken: async () => ({
    path: { id: (await operator('POST', '/tokens', { name: 'weekly', scopes: ['read'] })).body._id },
  }),
}

/** Sends the example of an operation, with an optional parameter, and expects what is described. */
async function sendExample(route: (typeof routes)[number], parameter?: Parameters<typeof exampleRequest>[2], own = {}) {
  const { operationId } = route.operation
  const request = exampleRequest(route.operation, (await OWN_REQUESTS[operationId]?.()) ?? {}, parameter)
  const answer = await sendRequest(ORIGIN, route, { ...request, ...own }, headers)
  const sent = parameter?.name ?? 'required parameters'
  expect([sent, answer.status < 400 || answer.body]).toEqual([sent, true])
  expect([sent, findMismatch(route.method, route.path, answer)]).toEqual([sent, ''])
  return answer
}
const routeOf = (operationId: string) => routes.find(({ operation }) => operation.operationId === operationId)!

beforeAll(async () => {
  config.ATOLL_OPERATOR_TOKEN = TOKEN
  config.ATOLL_BACKUP_TO = process.env.ATOLL_BACKUP_TO = freshTarget()
  // An only tenant would answer at every host.
  await createTestTenant()
})
afterAll(() => {
  config.ATOLL_OPERATOR_TOKEN = config.ATOLL_BACKUP_TO = ''
  delete process.env.ATOLL_BACKUP_TO
})

const IN_ORDER = ['createTenant', 'backUpTenant', 'restoreTenant', 'cloneTenant', 'deleteTenant']

test('the operator creates, backs up, restores and copies a tenant by the examples', async () => {
  const created = await sendExample(routeOf('createTenant'))
  const [, token] = created.body.setUpLink.split('#')
  const setUp = { method: 'POST', path: '/api/setup', operation: paths['/api/setup']!.post! }
  const request = exampleRequest(setUp.operation, { body: { token } })
  const signedIn = await sendRequest('http://acme.example.com', setUp, request, {})
  expect([signedIn.status, findMismatch('POST', '/api/setup', signedIn)]).toEqual([201, ''])
  const backup = await finish((await sendExample(routeOf('backUpTenant'))).body)
  const name = backup.result.place.split('/').at(-1)
  const restore = exampleRequest(routeOf('restoreTenant').operation, {})
  const body = { ...(restore.body as object), backup: name }
  const tasks = [
    await sendExample(routeOf('restoreTenant'), undefined, { body }),
    await sendExample(routeOf('cloneTenant')),
  ]
  for (const { body } of tasks) expect((await finish(body)).status).toBe('succeeded')
})

describe('the operator sends the example of each other operation, and it is answered as described', () => {
  test.each(
    routes
      .filter(({ operation }) => ![...IN_ORDER, ...Object.keys(EXCEPTIONS)].includes(operation.operationId))
      .map((route) => [route.operation.operationId, route] as const),
  )('%s', async (_, route) => {
    for (const parameter of [undefined, ...optionalParameters(route.operation)]) await sendExample(route, parameter)
  })
})

test('the operator deletes the tenant by the example', async () => {
  expect((await sendExample(routeOf('deleteTenant'))).body.success).toBeTrue()
})
