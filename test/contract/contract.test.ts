import { expect, test } from 'bun:test'
import { app } from '../../src/app'
import { ask, house, refusal } from '../house'
import { contract, finished } from './routes'

const shape = (path: string) => path.replace(/:\w+/g, ':x').replace(/\/$/, '')
const known = new Map(
  app.routes.map(({ method, path, hooks }) => [`${method} ${shape(path)}`, hooks.detail?.['x-access']]),
)
/** One route may serve several of the contract's: `/api/auth/:provider` is also `/api/auth/google`. */
const accessOf = ({ method, path }: (typeof contract)[number]) => {
  const exact = known.get(`${method} ${shape(path)}`)
  return exact ?? known.get(`${method} ${shape(path).replace(/^\/api\/auth\/\w+/, '/api/auth/:x')}`)
}

test('tells which routes of the contract exist', () => {
  const missing = contract.filter((route) => accessOf(route) === undefined)
  console.log(`The contract has ${contract.length} routes; ${contract.length - missing.length} exist. To come:`)
  for (const { method, path } of missing) console.log(`  ${method.padEnd(6)} ${path}`)
  expect(contract.length).toBe(new Set(contract.map(({ method, path }) => `${method} ${path}`)).size)
})

// A guest may have a rule of a blueprint's, and a refresh token is its own credential.
const wider: Record<string, string[]> = {
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

test.each(contract.filter(({ path }) => finished.some((start) => path === start || path.startsWith(`${start}/`))))(
  '$method $path exists, for those whom the contract names',
  (route) => {
    expect(wider[route.auth]).toContain(accessOf(route))
  },
)

test('what exists is closed to strangers where the contract asks for credentials', async () => {
  const { origin } = await house()
  for (const route of contract.filter(({ auth }) => auth !== 'anon')) {
    if (accessOf(route) === undefined) continue
    const { status } = await ask(
      route.method,
      `${origin}${route.path.replace(':providerKind', 'stripe').replace(/:\w+/g, 'x')}`,
    )
    expect(status, `${route.method} ${route.path}`).toBeOneOf([401, 403, 404])
  }
})

test('an address that is in nobody’s keeping is 404', async () => {
  const { as } = await house()
  for (const path of ['/permissions', '/nowhere', '/v2/me', '/'])
    expect(refusal(await as('admin').get(path))).toEqual([404, 'ROUTE_NOT_FOUND'])
})
