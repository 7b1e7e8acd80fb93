import { expect, test } from 'bun:test'
import { app } from '../../src/app'
import { callApi, createTestTenant, statusAndCode } from '../test-tenant'
import { contractRoutes, implementedPrefixes } from './contract-routes'

const normalizePath = (path: string) => path.replace(/:\w+/g, ':x').replace(/\/$/, '')
const accessByRoute = new Map(
  app.routes.map(({ method, path, hooks }) => [`${method} ${normalizePath(path)}`, hooks.detail?.['x-access']]),
)
/** One route may serve several of the contract's: `/api/auth/:provider` is also `/api/auth/google`. */
const accessOf = ({ method, path }: (typeof contractRoutes)[number]) => {
  const exact = accessByRoute.get(`${method} ${normalizePath(path)}`)
  return exact ?? accessByRoute.get(`${method} ${normalizePath(path).replace(/^\/api\/auth\/\w+/, '/api/auth/:x')}`)
}

test('tells which routes of the contract exist', () => {
  const missing = contractRoutes.filter((route) => accessOf(route) === undefined)
  console.log(
    `The contract has ${contractRoutes.length} routes; ${contractRoutes.length - missing.length} exist. To come:`,
  )
  for (const { method, path } of missing) console.log(`  ${method.padEnd(6)} ${path}`)
  expect(contractRoutes.length).toBe(new Set(contractRoutes.map(({ method, path }) => `${method} ${path}`)).size)
})

// A guest may have a rule of a blueprint's, and a refresh token is its own credential.
const ALLOWED_ACCESS: Record<string, string[]> = {
  anon: ['open', 'anyone'],
  auth: ['user', 'oneself', 'anyone', 'open'],
  priv: ['privileged'],
  // Who administers a workspace is a matter of that workspace, which the verb judges.
  'ws-admin': ['user'],
  editor: ['curator', 'teller'],
  // An integration says itself who may call it.
  integration: ['open'],
  // A signature says who it is.
  provider: ['open'],
}

test.each(
  contractRoutes.filter(({ path }) =>
    implementedPrefixes.some((start) => path === start || path.startsWith(`${start}/`)),
  ),
)('$method $path exists, for those whom the contract names', (route) => {
  expect(ALLOWED_ACCESS[route.auth]).toContain(accessOf(route))
})

test('what exists is closed to strangers where the contract asks for credentials', async () => {
  const { origin } = await createTestTenant()
  for (const route of contractRoutes.filter(({ auth }) => auth !== 'anon')) {
    if (accessOf(route) === undefined) continue
    const { status } = await callApi(
      route.method,
      `${origin}${route.path.replace(':providerKind', 'stripe').replace(/:\w+/g, 'x')}`,
    )
    expect(status, `${route.method} ${route.path}`).toBeOneOf([401, 403, 404])
  }
})

test('an address that is in nobody’s keeping is 404', async () => {
  const { as } = await createTestTenant()
  for (const path of ['/permissions', '/nowhere', '/v2/me', '/'])
    expect(statusAndCode(await as('admin').get(path))).toEqual([404, 'ROUTE_NOT_FOUND'])
})
