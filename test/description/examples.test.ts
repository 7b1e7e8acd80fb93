import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { type Requester, type RouteRequest, routes, sendRequest } from '../accounts/access/tenant-fixture'
import { document, findMismatch } from './described-answers'
import { type DescribedOperation, exampleRequest, optionalParameters } from './example-requests'
import { createExampleTenant } from './example-tenant'

setDefaultTimeout(120_000)

const paths = document.paths as unknown as Record<string, Record<string, DescribedOperation>>
const operationOf = ({ method, path }: { method: string; path: string }) =>
  paths[path.replace(/(.)\/$/, '$1').replace(/:(\w+)/g, '{$1}')]![method.toLowerCase()]!

/** The operations whose example is not sent here, and why. */
const EXCEPTIONS: Record<string, string> = {
  setUp: 'a tenant that has an administrator has no set-up link; operator-examples.test.ts sends it',
  completeProviderSignIn: 'only a provider knows its parameters; test/accounts/social plays the provider',
  receiveProviderEvent: 'the body is the provider’s, and signed by it; test/payments/webhooks plays the provider',
}

/** The parameters whose example is not sent here, and why. */
const PARAMETER_EXCEPTIONS: Record<string, string> = {
  ...Object.fromEntries(
    ['separator', 'decimal', 'bom', 'titles', 'format'].flatMap((name) => [
      [`exportEntities ${name}`, 'goes with `format=csv`; test/entities/transfer tries it'],
      [`importEntities ${name}`, 'belongs to a file in CSV; test/entities/transfer tries it'],
    ]),
  ),
  'listEntities $asOf': 'a time before the history of this test begins',
  'getEntity $asOf': 'a time before the history of this test begins',
  'sumEntities interval': 'goes with `groupBy`; test/entities/charts tries it',
  'downloadFile thumb': 'the file of this test is no picture; test/files tries it',
  'downloadFile fit': 'the file of this test is no picture; test/files tries it',
}

/** What is unique in a tenant that has these examples already, or has to lead to a local server. */
const OWN_MEMBERS: Record<string, string> = {
  createUser: 'username',
  createBlueprint: 'key',
  createConfiguration: 'key',
  createCoupon: 'code',
  createInvite: 'email',
  verifyEmail: 'email',
  testIntegrationSource: 'metadata',
}

let at: Awaited<ReturnType<typeof createExampleTenant>>
beforeAll(async () => {
  at = await createExampleTenant()
})
afterAll(() => at.close())

let requester: Requester | undefined
const withOwnMember = (request: RouteRequest, own: RouteRequest, member: string | undefined): RouteRequest =>
  member ? { ...request, body: { ...(request.body as object), [member]: (own.body as never)[member] } } : request

const described = routes.map((route) => ({ ...route, operation: operationOf(route) }))

describe('an admin sends the example of each operation of the API, and it is answered as described', () => {
  test.each(
    described
      .filter(({ operation }) => !(operation.operationId in EXCEPTIONS))
      .map((one) => [one.operation.operationId, one] as const),
  )('%s', async (operationId, route) => {
    const { operation } = route
    const optional = optionalParameters(operation).filter(
      ({ name }) => !(`${operationId} ${name}` in PARAMETER_EXCEPTIONS),
    )
    let own: RouteRequest | undefined
    for (const parameter of [undefined, ...optional]) {
      requester ??= await at.signIn()
      // What reads leaves everything as it was.
      if (!own || route.method !== 'GET') own = await at.ownRequest(route.name, requester)
      const request = withOwnMember(exampleRequest(operation, own, parameter), own, OWN_MEMBERS[operationId])
      const answer = await sendRequest(at.origin, route, request, requester.headers)
      const sent = parameter?.name ?? 'required parameters'
      expect([sent, answer.status < 400 || answer.body]).toEqual([sent, true])
      expect([sent, findMismatch(route.method, route.path, answer)]).toEqual([sent, ''])
      if (/logout|cookie|password/.test(route.path)) requester = undefined
    }
  })
})

test('every exception is an operation, a parameter or a member of the description', () => {
  const ids = described.map(({ operation }) => operation.operationId)
  const parameters = described.flatMap(({ operation }) =>
    optionalParameters(operation).map(({ name }) => `${operation.operationId} ${name}`),
  )
  expect(ids).toEqual(expect.arrayContaining([...Object.keys(EXCEPTIONS), ...Object.keys(OWN_MEMBERS)]))
  expect(Object.keys(PARAMETER_EXCEPTIONS).filter((one) => !parameters.includes(one))).toEqual([
    'importEntities bom',
    'importEntities titles',
  ])
})
