import { expect, test } from 'bun:test'
import { app } from '../../src/app'
import { callApi, createTestTenant, statusAndCode } from '../test-tenant'
import { contractRoutes, implementedPrefixes } from './contract-routes'

const normalizePath = (path: string) => path.replace(/:\w+/g, ':x').replace(/\/$/, '')
const accessByRoute = new Map(
  app.routes.map(({ method, path, hooks }) => [`${method} ${normalizePath(path)}`, hooks.detail?.['x-access']]),
)
/** One route may serve several routes of the contract: `/api/auth/:provider` is also `/api/auth/google`. */
const accessOf = ({ method, path }: (typeof contractRoutes)[number]) => {
  const exact = accessByRoute.get(`${method} ${normalizePath(path)}`)
  return exact ?? accessByRoute.get(`${method} ${normalizePath(path).replace(/^\/api\/auth\/\w+/, '/api/auth/:x')}`)
}

test('every route of the contract exists, and is listed once', () => {
  const missing = contractRoutes.filter((route) => accessOf(route) === undefined)
  expect(missing.map(({ method, path }) => `${method} ${path}`)).toEqual([])
  expect(contractRoutes.length).toBe(new Set(contractRoutes.map(({ method, path }) => `${method} ${path}`)).size)
})

// The rules of a blueprint can admit guests, and a refresh token is its own credential.
const ALLOWED_ACCESS: Record<string, string[]> = {
  anon: ['open', 'anyone'],
  auth: ['user', 'oneself', 'anyone', 'open'],
  priv: ['privileged'],
  // The route itself checks whether the caller is an admin of the workspace.
  'ws-admin': ['user'],
  editor: ['curator', 'teller'],
  // Each integration defines its own callers.
  integration: ['open'],
  // The signature authenticates the provider.
  provider: ['open'],
}

test.each(
  contractRoutes.filter(({ path }) =>
    implementedPrefixes.some((start) => path === start || path.startsWith(`${start}/`)),
  ),
)('$method $path exists and admits the callers that the contract names', (route) => {
  expect(ALLOWED_ACCESS[route.auth]).toContain(accessOf(route))
})

test('every route that requires credentials answers anonymous callers 401, 403 or 404', async () => {
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

test('an unknown path answers 404 ROUTE_NOT_FOUND', async () => {
  const { as } = await createTestTenant()
  for (const path of ['/permissions', '/nowhere', '/v2/me', '/'])
    expect(statusAndCode(await as('admin').get(path))).toEqual([404, 'ROUTE_NOT_FOUND'])
})
