import { BlockList, isIP } from 'node:net'

/** Finds the addresses of a host's name. */
export type ResolveHost = (host: string) => Promise<string[]>

// On Linux the default is the C library's, which holds one of a few threads of the whole process while a name server is silent.
const DNS_BACKEND = process.platform === 'linux' ? 'c-ares' : 'system'
const resolveWithSystem: ResolveHost = async (host) =>
  (await Bun.dns.lookup(host, { backend: DNS_BACKEND })).map(({ address }) => address)

/** Addresses that are not of the public internet (RFC 6890 and its registry at IANA). */
const nonPublicNetworks = new BlockList()
const NON_PUBLIC_CIDRS = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24'],
  ...['224.0.0.0/3', '2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'],
]
for (const network of NON_PUBLIC_CIDRS) {
  const [address = '', bits] = network.split('/')
  nonPublicNetworks.addSubnet(address, Number(bits), isIP(address) === 4 ? 'ipv4' : 'ipv6')
}
const globalUnicast = new BlockList()
globalUnicast.addSubnet('2000::', 3, 'ipv6')

/**
 * Whether an address is one of the public internet. Of version 6 that is what begins with 001 (RFC 4291 §2.4), but for
 * what carries an address of version 4: mapped ones, 6to4, Teredo and NAT64 lead to neighbours, too.
 */
export const isPublic = (address: string) => {
  if (isIP(address) === 4) return !nonPublicNetworks.check(address, 'ipv4')
  if (isIP(address) !== 6 || address.includes('%')) return false
  return globalUnicast.check(address, 'ipv6') && !nonPublicNetworks.check(address, 'ipv6')
}

/** What may be asked at all. */
export type OutboundPolicy = {
  /** Whether it may be a neighbour: somebody without a public address. */
  privateNetwork: boolean
  /** Whether also without encryption; neighbours are asked by it as well. */
  http?: boolean
  resolve?: ResolveHost
}

/** Somebody who may not be asked. */
export class BlockedAddress extends Error {}

/** The host of a URL as it is looked for and as its certificate names it. */
export const normalizeHost = ({ hostname }: URL) => hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')

/** Whether a host, as a URL has it, is an address instead of a name. */
export const isAddress = (host: string) => isIP(host.replace(/^\[|\]$/g, '')) > 0

/** Whether a URL names a neighbour by its address. What a name means is seen only when it is asked. */
export const hasPrivateAddress = (url: URL) => isIP(normalizeHost(url)) > 0 && !isPublic(normalizeHost(url))

/**
 * Where the host of a URL is, to be connected to without asking for its name again: what a name means changes.
 * @throws Refused when one of its addresses, or how it is to be asked, is not allowed
 */
export async function resolveAllowedAddresses(
  url: URL,
  { privateNetwork, http = false, resolve = resolveWithSystem }: OutboundPolicy,
) {
  const { protocol, username, password } = url
  if (protocol !== 'https:' && !(protocol === 'http:' && (http || privateNetwork)))
    throw new BlockedAddress(`The protocol ${protocol} is not allowed.`)
  if (username || password) throw new BlockedAddress('The URL must not contain credentials.')
  const host = normalizeHost(url)
  const addresses = isIP(host) ? [host] : await resolve(host)
  if (!addresses.length) throw new BlockedAddress(`${host} does not resolve to an address.`)
  if (!privateNetwork && !addresses.every(isPublic)) throw new BlockedAddress(`${host} is not a public address.`)
  return addresses
}
