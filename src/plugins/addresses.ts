import { config } from '../config'
import { namesInner } from '../core/addresses'
import { type Flaw, invalid } from '../core/problem'

export const privateNetwork = () => config.ATOLL_ALLOW_PRIVATE_NETWORK === 'on'

/** Refuses addresses that we would never ask, as soon as somebody gives them. @throws 400 */
export function refuseAddresses(addresses: { path: string; url: string | null | undefined }[]) {
  const flaws = addresses.flatMap(({ path, url }) => (url ? flawOf(path, url) : []))
  if (flaws.length) invalid(...flaws)
}

function flawOf(path: string, address: string): Flaw[] {
  const url = URL.parse(address)
  const flaw = (message: string) => [{ path, message }]
  if (!url || !/^https?:$/.test(url.protocol))
    return flaw('This is not an address. Write it as https://example.com/path.')
  if (url.username || url.password) return flaw('An address must not hold a name or a password.')
  if (privateNetwork()) return []
  if (url.protocol !== 'https:')
    return flaw(
      'Only https addresses are allowed. Who runs the server can allow its own network by ATOLL_ALLOW_PRIVATE_NETWORK=on.',
    )
  return namesInner(url) ? flaw('This address is not on the public internet.') : []
}
