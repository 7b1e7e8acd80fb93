import { t } from 'elysia'
import { buildHeaders } from '../../connections/kinds/http'
import { joinUrl } from '../../connections/kinds/probe'
import { resolveConnection } from '../../connections/resolver'
import { assertAllowedUrls, isPrivateNetworkAllowed } from '../../connections/url-policy'
import { fetchExternal } from '../../core/http-client'
import { id, webAddress } from '../../core/shapes'
import { toPayload } from '../invocation'
import { type TargetKind, validateSource } from './target-kind'

const TARGET_TIMEOUT_MS = 30_000
const MAX_ANSWER_BYTES = 1 << 20
const MAX_REDIRECTS = 3
const PASSED_ON_HEADERS = ['content-type', 'retry-after']

const METHODS = ['POST', 'PUT', 'PATCH', 'DELETE', 'GET'] as const

const shape = t.Object({
  sourceId: t.Optional({ ...id, description: 'an integration source of the kind http: its URL and headers' }),
  url: t.Optional(webAddress({ maxLength: 2_000, description: 'the URL, without an integration source' })),
  path: t.Optional(t.String({ maxLength: 2_000, description: 'the path below the URL of the integration source' })),
  method: t.Optional(
    t.Union(
      METHODS.map((method) => t.Literal(method)),
      { description: 'default: POST' },
    ),
  ),
})

/**
 * Another server, which receives the event, or the request (`method`, `path`, `query`, `headers`, `body`, `rawBody`),
 * as JSON. The caller receives its status and its answer.
 */
export const http: TargetKind<typeof shape> = {
  shape,
  area: 'integrations',
  async validate(referable, { sourceId, url, path }) {
    if (!sourceId === !url) return [{ path: '/url', message: 'Provide either sourceId or url.' }]
    if (path !== undefined && !sourceId) return [{ path: '/path', message: 'path requires sourceId.' }]
    assertAllowedUrls([{ path: '/target/url', url }])
    return validateSource(referable, sourceId, 'http')
  },
  async run(ctx, { sourceId, url = '', path, method = 'POST' }, invocation) {
    const source = sourceId ? await resolveConnection(ctx, sourceId, 'http') : undefined
    const base = source?.metadata.url ?? url
    const headers = buildHeaders(source?.authentication ?? {})
    headers.set('user-agent', 'atoll')
    headers.set('idempotency-key', invocation._id)
    const body = method === 'GET' ? undefined : JSON.stringify(toPayload(invocation))
    if (body) headers.set('content-type', 'application/json')
    const { signal } = invocation
    const { tenant } = ctx
    const limits = {
      tenant,
      timeout: TARGET_TIMEOUT_MS,
      limit: MAX_ANSWER_BYTES,
      redirects: MAX_REDIRECTS,
      privateNetwork: isPrivateNetworkAllowed(),
    }
    const response = await fetchExternal(path ? joinUrl(base, path) : base, { method, headers, body, signal }, limits)
    const passedOn = PASSED_ON_HEADERS.flatMap((name) => {
      const value = response.headers.get(name)
      return value ? [[name, value] as [string, string]] : []
    })
    return new Response(response.body, { status: response.status, headers: passedOn })
  },
}
