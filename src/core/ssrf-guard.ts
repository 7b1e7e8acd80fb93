import type { BlockList } from 'node:net'

/** Resolves the name of a host to its addresses. */
export type ResolveHost = (host: string) => Promise<string[]>

// On Linux the default is the C library's resolver, which blocks one of the few threads of the process while a name
// server is silent.
const DNS_BACKEND = process.platform === 'linux' ? 'c-ares' : 'system'
const resolveWithSystem: ResolveHost = async (host) =>
  (await Bun.dns.lookup(host, { backend: DNS_BACKEND })).map(({ address }) => address)

/** Networks that are not part of the public internet (RFC 6890 and its registry at IANA). */
const NON_PUBLIC_CIDRS = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24'],
  ...['224.0.0.0/3', '2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'],
]
const GLOBAL_UNICAST_CIDRS = ['2000::/3']

function createBlockList(cidrs: string[]) {
  const { BlockList } = process.getBuiltinModule('node:net')
  const list = new BlockList()
  for (const network of cidrs) {
    const [address = '', bits] = network.split('/')
    list.addSubnet(address, Number(bits), ipVersionOf(address) === 4 ? 'ipv4' : 'ipv6')
  }
  return list
}

let networks: { nonPublic: BlockList; globalUnicast: BlockList } | undefined
const getNetworks = () => {
  networks ??= { nonPublic: createBlockList(NON_PUBLIC_CIDRS), globalUnicast: createBlockList(GLOBAL_UNICAST_CIDRS) }
  return networks
}

const IPV4_PATTERN = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/

/** Returns the version of an IP address without a zone, or 0 for any other text. */
export const ipVersionOf = (text: string): 0 | 4 | 6 => (IPV4_PATTERN.test(text) ? 4 : isIpv6(text) ? 6 : 0)

/** Tells whether a text has eight groups, or fewer with one `::`; the last two may be written as an IPv4 address. */
function isIpv6(text: string): boolean {
  const lastAt = text.lastIndexOf(':') + 1
  const plain = lastAt && IPV4_PATTERN.test(text.slice(lastAt)) ? `${text.slice(0, lastAt)}0:0` : text
  const halves = plain.split('::').map((half) => (half ? half.split(':') : []))
  const groups = halves.flat()
  if (!groups.every((group) => /^[\da-f]{1,4}$/i.test(group))) return false
  return halves.length === 1 ? groups.length === 8 : halves.length === 2 && groups.length < 8
}

/**
 * Tells whether an address belongs to the public internet. In IPv6 these begin with 001 (RFC 4291 §2.4), except
 * addresses that embed an IPv4 address: IPv4-mapped, 6to4, Teredo and NAT64 addresses may lead to private ones.
 */
export const isPublic = (address: string) => {
  const version = ipVersionOf(address)
  if (!version) return false
  const { nonPublic, globalUnicast } = getNetworks()
  if (version === 4) return !nonPublic.check(address, 'ipv4')
  return globalUnicast.check(address, 'ipv6') && !nonPublic.check(address, 'ipv6')
}

/** Which servers may be requested. */
export type OutboundPolicy = {
  /** Allows servers in the private network, which have no public address. */
  privateNetwork: boolean
  /** Allows plain HTTP. `privateNetwork` allows it as well. */
  http?: boolean
  resolve?: ResolveHost
}

/** Thrown for an address or a protocol that is not allowed. */
export class BlockedAddress extends Error {}

/** Returns the host of a URL as DNS and certificates name it. */
export const normalizeHost = ({ hostname }: URL) => hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')

/** Tells whether the host of a URL is an IP address instead of a name. */
export const isAddress = (host: string) => ipVersionOf(host.replace(/^\[|\]$/g, '')) > 0

/** Tells whether a URL contains a private IP address. What a name resolves to is checked only when it is requested. */
export const hasPrivateAddress = (url: URL) => ipVersionOf(normalizeHost(url)) > 0 && !isPublic(normalizeHost(url))

/**
 * Returns the addresses of a URL's host, to connect to without resolving the name again, because it may resolve
 * differently.
 * @throws BlockedAddress when one of the addresses, the protocol or the URL is not allowed
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
  const addresses = ipVersionOf(host) ? [host] : await resolve(host)
  if (!addresses.length) throw new BlockedAddress(`${host} does not resolve to an address.`)
  if (!privateNetwork && !addresses.every(isPublic)) throw new BlockedAddress(`${host} is not a public address.`)
  return addresses
}
