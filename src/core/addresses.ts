import { BlockList, isIP } from 'node:net'

/** Finds the addresses of a host's name. */
export type Resolve = (host: string) => Promise<string[]>

// On Linux the default is the C library's, which holds one of a few threads of the whole process while a name server is silent.
const backend = process.platform === 'linux' ? 'c-ares' : 'system'
const system: Resolve = async (host) => (await Bun.dns.lookup(host, { backend })).map(({ address }) => address)

/** Addresses that are not of the public internet (RFC 6890 and its registry at IANA). */
const inner = new BlockList()
const networks = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24'],
  ...['224.0.0.0/3', '2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'],
]
for (const network of networks) {
  const [address = '', bits] = network.split('/')
  inner.addSubnet(address, Number(bits), isIP(address) === 4 ? 'ipv4' : 'ipv6')
}
const global = new BlockList()
global.addSubnet('2000::', 3, 'ipv6')

/**
 * Whether an address is one of the public internet. Of version 6 that is what begins with 001 (RFC 4291 §2.4), but for
 * what carries an address of version 4: mapped ones, 6to4, Teredo and NAT64 lead to neighbours, too.
 */
export const isPublic = (address: string) => {
  if (isIP(address) === 4) return !inner.check(address, 'ipv4')
  if (isIP(address) !== 6 || address.includes('%')) return false
  return global.check(address, 'ipv6') && !inner.check(address, 'ipv6')
}

/** What may be asked at all. */
export type Reach = {
  /** Whether it may be a neighbour: somebody without a public address. */
  privateNetwork: boolean
  /** Whether also without encryption; neighbours are asked by it as well. */
  http?: boolean
  resolve?: Resolve
}

/** Somebody who may not be asked. */
export class Refused extends Error {}

/** The host of a URL as it is looked for and as its certificate names it. */
export const hostIn = ({ hostname }: URL) => hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')

/** Whether a host, as a URL has it, is an address instead of a name. */
export const isAddress = (host: string) => isIP(host.replace(/^\[|\]$/g, '')) > 0

/** Whether a URL names a neighbour by its address. What a name means is seen only when it is asked. */
export const namesInner = (url: URL) => isIP(hostIn(url)) > 0 && !isPublic(hostIn(url))

/**
 * Where the host of a URL is, to be connected to without asking for its name again: what a name means changes.
 * @throws Refused when one of its addresses, or how it is to be asked, is not allowed
 */
export async function addressesOf(url: URL, { privateNetwork, http = false, resolve = system }: Reach) {
  const { protocol, username, password } = url
  if (protocol !== 'https:' && !(protocol === 'http:' && (http || privateNetwork)))
    throw new Refused(`${protocol} is not spoken here.`)
  if (username || password) throw new Refused('A name and a password stand in the address.')
  const host = hostIn(url)
  const addresses = isIP(host) ? [host] : await resolve(host)
  if (!addresses.length) throw new Refused(`${host} has no address.`)
  if (!privateNetwork && !addresses.every(isPublic)) throw new Refused(`${host} is not of the public internet.`)
  return addresses
}
