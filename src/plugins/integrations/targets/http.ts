import { t } from 'elysia'
import { outside } from '../../../core/outside'
import { id, webAddress } from '../../../core/shapes'
import { privateNetwork, refuseAddresses } from '../../addresses'
import { joined } from '../../connections/kinds/asking'
import { headersOf } from '../../connections/kinds/http'
import { opened } from '../../connections/opening'
import { told } from '../occasion'
import { sourceFlaws, type TargetKind } from './target'

const TIMEOUT = 30_000
const LIMIT = 1 << 20 // bytes of an answer
const REDIRECTS = 3

const METHODS = ['POST', 'PUT', 'PATCH', 'DELETE', 'GET'] as const

const shape = t.Object({
  sourceId: t.Optional({ ...id, description: 'a connection of the kind http: its address and headers' }),
  url: t.Optional(webAddress({ maxLength: 2_000, description: 'where it is, without a connection' })),
  path: t.Optional(t.String({ maxLength: 2_000, description: "below the connection's address" })),
  method: t.Optional(
    t.Union(
      METHODS.map((method) => t.Literal(method)),
      { description: 'POST unless told' },
    ),
  ),
})

/**
 * Another server, which is sent the event, or the request (`method`, `path`, `query`, `headers`, `body`, `rawBody`), as JSON.
 * Whoever called gets its status and its answer.
 */
export const http: TargetKind<typeof shape> = {
  shape,
  area: 'integrations',
  async flaws(tx, { sourceId, url, path }) {
    if (!sourceId === !url)
      return [{ path: '/url', message: 'Give the id of an integration source, or else an address: one of the two.' }]
    if (path !== undefined && !sourceId)
      return [{ path: '/path', message: 'A path is one below the address of an integration source.' }]
    refuseAddresses([{ path: '/target/url', url }])
    return sourceFlaws(tx, sourceId, 'http')
  },
  async run(ctx, { sourceId, url = '', path, method = 'POST' }, occasion) {
    const source = sourceId ? await opened(ctx, sourceId, 'http') : undefined
    const base = source?.metadata.url ?? url
    const headers = headersOf(source?.authentication ?? {})
    headers.set('user-agent', 'atoll')
    headers.set('idempotency-key', occasion._id)
    const body = method === 'GET' ? undefined : JSON.stringify(told(occasion))
    if (body) headers.set('content-type', 'application/json')
    const { signal } = occasion
    const { tenant } = ctx
    const bounds = { tenant, timeout: TIMEOUT, limit: LIMIT, redirects: REDIRECTS, privateNetwork: privateNetwork() }
    const answer = await outside(path ? joined(base, path) : base, { method, headers, body, signal }, bounds)
    const type = answer.headers.get('content-type')
    return new Response(answer.body, { status: answer.status, headers: type ? { 'content-type': type } : {} })
  },
}
