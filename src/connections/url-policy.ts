import { config } from '../config'
import { badRequest, type FieldError } from '../core/problem'
import { hasPrivateAddress } from '../core/ssrf-guard'

export const isPrivateNetworkAllowed = () => config.ATOLL_ALLOW_PRIVATE_NETWORK === 'on'

/** Rejects URLs that outbound requests could never reach, before they are stored. @throws 400 */
export function assertAllowedUrls(urls: { path: string; url: string | null | undefined }[]) {
  const errors = urls.flatMap(({ path, url }) => (url ? validateUrl(path, url) : []))
  if (errors.length) badRequest(...errors)
}

function validateUrl(path: string, address: string): FieldError[] {
  const url = URL.parse(address)
  const toErrors = (message: string) => [{ path, message }]
  if (!url || !/^https?:$/.test(url.protocol))
    return toErrors('This is not a URL. Write it as https://example.com/path.')
  if (url.username || url.password) return toErrors('A URL must not contain a username or password.')
  if (isPrivateNetworkAllowed()) return []
  if (url.protocol !== 'https:')
    return toErrors(
      'Only https URLs are allowed. The server operator can allow private networks with ATOLL_ALLOW_PRIVATE_NETWORK=on.',
    )
  return hasPrivateAddress(url) ? toErrors('This URL is not on the public internet.') : []
}
