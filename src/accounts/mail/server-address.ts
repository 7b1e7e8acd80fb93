import { config, isTlsServer } from '../../config'
import { parseList } from '../../core/setting-types'
import { isLoopbackHost } from '../../http/allowed-origins'
import { isMailEnabled } from '../../platform/mail/smtp'
import { appSettings } from '../../platform/settings/app-settings'
import { getSettings } from '../../platform/settings/tenant-settings'
import { listAssignedHosts } from '../../tenancy/hosts'
import { getDefaultTenantId, type Tenant } from '../../tenancy/tenants'

/** Returns the first host of a tenant that other machines can reach, if it has one. */
export const getPublicHost = async ({ tenant }: Tenant): Promise<string | undefined> =>
  (await listAssignedHosts(tenant)).find((host) => !isLoopbackHost(host))

/** Returns the URL of a tenant's API on its first assigned host, or an empty string without one. */
export async function getApiUrl(tenant: Tenant): Promise<string> {
  const [host] = await listAssignedHosts(tenant.tenant)
  return host ? `${toOrigin((await getPublicHost(tenant)) ?? host)}/api` : ''
}

/**
 * Returns the URL of a page of this server for a tenant: at its first host, else at the installation's own. It is never
 * the host of a request, which a stranger may have chosen.
 */
export async function toOwnPage(tenant: Tenant, page: string): Promise<string> {
  const [first] = await listAssignedHosts(tenant.tenant)
  const assigned = (await getPublicHost(tenant)) ?? first
  const host = assigned ?? parseList(config.ATOLL_PUBLIC_HOSTS.toLowerCase())[0] ?? 'localhost'
  const isNamed = assigned === undefined && (await getDefaultTenantId(host)) !== tenant.tenant
  const [path = '', token] = page.split('#')
  return `${toOrigin(host)}/admin/${path}${isNamed ? `?tenant=${tenant.tenant}` : ''}${token ? `#${token}` : ''}`
}

/** Returns a warning where mail is sent, but its links lead to the own machine only. */
export async function listMailLinkWarnings(tenant: Tenant) {
  const { websiteUrls } = await getSettings(tenant, appSettings)
  const page = URL.parse(await toOwnPage(tenant, ''))
  if (!isMailEnabled() || websiteUrls.length || !page || !isLoopbackHost(page.hostname)) return []
  const message = `Links in mails lead to ${page.host}, which other machines cannot reach. Give the tenant a host with "atoll tenant hosts ${tenant.tenant} <host>", or name its website in websiteUrls.`
  return [{ path: '/configurations/app-configuration/websiteUrls', code: 'LOCAL_MAIL_LINKS', message }]
}

/** Other machines come by HTTPS: to this server, or to a proxy before it. */
const toOrigin = (host: string) =>
  isLoopbackHost(host) ? `${isTlsServer() ? 'https' : 'http'}://${host}:${config.ATOLL_PORT}` : `https://${host}`
