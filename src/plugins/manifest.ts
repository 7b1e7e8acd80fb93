import { Value } from '@sinclair/typebox/value'
import { parseJson } from '../core/body'
import { TooManyCalls } from '../core/outgoing-calls'
import { outside } from '../core/outside'
import { Problem } from '../core/problem'
import { listFlaws } from '../core/validation'
import type { Tenant } from '../tenancy/tenants'
import { privateNetwork } from './addresses'
import { Manifest } from './shapes'

const TIMEOUT = 10_000
const LIMIT = 256 << 10
const REDIRECTS = 3

/**
 * What a plugin says of itself at its address, in JSON: `{ name, description, apiPath, proxyUrl, subscribedEvents }`, any
 * part of it; others are overlooked. @throws 502 MANIFEST_UNREACHABLE, 503, 400 MANIFEST_INVALID with what is wrong
 */
export async function readManifest({ tenant }: Pick<Tenant, 'tenant'>, address: string): Promise<Manifest> {
  const asked = { headers: { accept: 'application/json', 'user-agent': 'atoll' } }
  const bounds = { tenant, timeout: TIMEOUT, limit: LIMIT, redirects: REDIRECTS, privateNetwork: privateNetwork() }
  const answer = await outside(address, asked, bounds).catch((cause) => {
    if (cause instanceof TooManyCalls) throw cause
    return unreachable('did not answer', cause)
  })
  if (answer.status !== 200) return unreachable(`answered ${answer.status}`)
  const said = absolute(parsed(await answer.text()), address)
  const flaws = listFlaws(Manifest, said).slice(0, 20)
  if (flaws.length) throw unfit(flaws)
  return Value.Clean(Manifest, said) as Manifest
}

function parsed(text: string): unknown {
  let value: unknown
  try {
    value = parseJson(text)
  } catch {
    throw unfit([{ path: '', message: 'This is no JSON, or none that can be kept.' }])
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    throw unfit([{ path: '', message: 'A manifest is an object.' }])
  return value
}

/** Addresses may be relative to that of the manifest. */
function absolute(said: unknown, base: string): unknown {
  const full = (address: unknown) =>
    typeof address === 'string' ? (URL.parse(address, base)?.href ?? address) : address
  const { proxyUrl, subscribedEvents, ...rest } = said as Record<string, unknown>
  const hooked = (entry: unknown) =>
    entry !== null && typeof entry === 'object' && 'hookUrl' in entry
      ? { ...entry, hookUrl: full(entry.hookUrl) }
      : entry
  return {
    ...rest,
    ...(proxyUrl !== undefined && { proxyUrl: full(proxyUrl) }),
    ...(subscribedEvents !== undefined && {
      subscribedEvents: Array.isArray(subscribedEvents) ? subscribedEvents.map(hooked) : subscribedEvents,
    }),
  }
}

const unfit = (details: unknown) =>
  new Problem(400, 'MANIFEST_INVALID', 'The manifest does not say what a manifest says.', { details })

function unreachable(why: string, cause?: unknown): never {
  throw new Problem(502, 'MANIFEST_UNREACHABLE', `The address of the manifest ${why}. See that it is right.`, { cause })
}
