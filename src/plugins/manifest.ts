import { Value } from '@sinclair/typebox/value'
import { isPrivateNetworkAllowed } from '../connections/url-policy'
import { parseJson } from '../core/body'
import { fetchExternal } from '../core/http-client'
import { TooManyCalls } from '../core/outbound-calls'
import { Problem } from '../core/problem'
import { listFieldErrors } from '../core/validation'
import type { Tenant } from '../tenancy/tenants'
import { Manifest } from './shapes'

const MANIFEST_TIMEOUT_MS = 10_000
const MAX_MANIFEST_BYTES = 256 << 10
const MAX_REDIRECTS = 3

/**
 * Fetches the manifest of a plugin: JSON with any of `name`, `description`, `apiPath`, `proxyUrl` and
 * `subscribedEvents`. Other fields are ignored.
 * @throws 400 MANIFEST_INVALID with at most 20 errors, 502 MANIFEST_UNREACHABLE, 503 when too many calls are under way
 */
export async function readManifest({ tenant }: Pick<Tenant, 'tenant'>, address: string): Promise<Manifest> {
  const init = { headers: { accept: 'application/json', 'user-agent': 'atoll' } }
  const limits = {
    tenant,
    timeout: MANIFEST_TIMEOUT_MS,
    limit: MAX_MANIFEST_BYTES,
    redirects: MAX_REDIRECTS,
    privateNetwork: isPrivateNetworkAllowed(),
  }
  const response = await fetchExternal(address, init, limits).catch((cause) => {
    if (cause instanceof TooManyCalls) throw cause
    return throwUnreachable('did not answer', cause)
  })
  if (response.status !== 200) return throwUnreachable(`answered ${response.status}`)
  const manifest = resolveUrls(parseObject(await response.text()), address)
  const errors = listFieldErrors(Manifest, manifest).slice(0, 20)
  if (errors.length) throw invalidManifest(errors)
  return Value.Clean(Manifest, manifest) as Manifest
}

function parseObject(text: string): unknown {
  let value: unknown
  try {
    value = parseJson(text)
  } catch {
    throw invalidManifest([{ path: '', message: 'The manifest is not valid JSON.' }])
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    throw invalidManifest([{ path: '', message: 'The manifest must be a JSON object.' }])
  return value
}

/** URLs in a manifest may be relative to the URL of the manifest. */
function resolveUrls(manifest: unknown, base: string): unknown {
  const toAbsolute = (address: unknown) =>
    typeof address === 'string' ? (URL.parse(address, base)?.href ?? address) : address
  const { proxyUrl, subscribedEvents, ...otherFields } = manifest as Record<string, unknown>
  const resolveHookUrl = (entry: unknown) =>
    entry !== null && typeof entry === 'object' && 'hookUrl' in entry
      ? { ...entry, hookUrl: toAbsolute(entry.hookUrl) }
      : entry
  return {
    ...otherFields,
    ...(proxyUrl !== undefined && { proxyUrl: toAbsolute(proxyUrl) }),
    ...(subscribedEvents !== undefined && {
      subscribedEvents: Array.isArray(subscribedEvents) ? subscribedEvents.map(resolveHookUrl) : subscribedEvents,
    }),
  }
}

const invalidManifest = (details: unknown) =>
  new Problem(400, 'MANIFEST_INVALID', 'The manifest is invalid.', { details })

function throwUnreachable(reason: string, cause?: unknown): never {
  throw new Problem(502, 'MANIFEST_UNREACHABLE', `The manifest URL ${reason}. Check the URL.`, { cause })
}
