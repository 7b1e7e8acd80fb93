import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import { Problem } from './problem'

/** What another server may cost us: ms until all of its answer is there, bytes of it, and whether it may be a neighbour. */
export type Bounds = { timeout: number; limit: number; privateNetwork: boolean }

/** Addresses that are not of the public internet (RFC 6890, RFC 4193, RFC 4291, RFC 6598). */
const inner = new BlockList()
for (const [network, bits] of [
  ...([
    ['0.0.0.0', 8],
    ['10.0.0.0', 8],
    ['100.64.0.0', 10],
    ['127.0.0.0', 8],
    ['169.254.0.0', 16],
  ] as const),
  ...([
    ['172.16.0.0', 12],
    ['192.0.0.0', 24],
    ['192.168.0.0', 16],
    ['198.18.0.0', 15],
    ['224.0.0.0', 3],
  ] as const),
])
  inner.addSubnet(network, bits, 'ipv4')

/**
 * Whether an address is one of the public internet. Of version 6 that is what begins with 001 (RFC 4291 §2.4), but for
 * what carries an address of version 4.
 */
export const isPublic = (address: string) => {
  if (isIP(address) === 4) return !inner.check(address, 'ipv4')
  return /^[23]/.test(address) && !/^(2002:|2001:0?:|2001::|2001:0:)/.test(address)
}

/**
 * Asks another server, which some tenant has named. Its answer is read whole, and redirections are not followed. Into the
 * network of this installation nobody gets by it: unless that is allowed, hosts need a public address and a certificate,
 * so that a name which means something else a moment later leads nowhere.
 * @throws 502 OUTSIDE_UNREACHABLE, which tells nothing of what is there
 */
export async function outside(url: string, init: RequestInit, bounds: Bounds): Promise<Response> {
  const signal = AbortSignal.timeout(bounds.timeout)
  try {
    if (!bounds.privateNetwork) await refuseInner(new URL(url))
    const response = await fetch(url, { ...init, redirect: 'manual', signal })
    const body = await bounded(response, bounds.limit)
    return new Response(body, { status: response.status, headers: response.headers })
  } catch (cause) {
    throw new Problem(502, 'OUTSIDE_UNREACHABLE', 'Another server did not answer as it should. Try again later.', {
      cause: cause instanceof Problem ? undefined : cause,
    })
  }
}

async function refuseInner({ protocol, hostname }: URL) {
  const host = hostname.replace(/^\[|\]$/g, '')
  const addresses = isIP(host) ? [{ address: host }] : await lookup(host, { all: true })
  if (protocol !== 'https:' || !addresses.length || !addresses.every(({ address }) => isPublic(address)))
    throw new Error(`${host} is not of the public internet, or is not asked by https.`)
}

async function bounded(response: Response, limit: number) {
  // What has no body must not get an empty one.
  if (!response.body || [204, 304].includes(response.status)) return null
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength
    if (size > limit) throw new Error(`The answer has more than ${limit} bytes.`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
