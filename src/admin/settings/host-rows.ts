import { useQuery } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import { installationQuery, queryClient } from '../api/queries'
import type { AppConfiguration, WebsiteHost } from '../api/schema'
import { appConfigurationQuery } from '../branding/tenant-brand'

/** A host of the tenant: given by the operator, or of websites that the tenant names. */
export type HostRow = {
  host: string
  isGiven: boolean
  /** The addresses of its websites. */
  websites: string[]
  state: WebsiteHost['state'] | 'local'
  message?: string
  record?: WebsiteHost['record']
}

const readWebsites = (configuration?: AppConfiguration): string[] => {
  const { websiteUrls } = configuration?.metadata ?? {}
  return Array.isArray(websiteUrls) ? websiteUrls.map(String) : []
}

const toHost = (address: string) => URL.parse(address)?.hostname ?? address

function toRows(given: readonly string[], configuration?: AppConfiguration): HostRow[] {
  const byHost = Map.groupBy(readWebsites(configuration), toHost)
  const states = new Map(configuration?.hosts?.map((each) => [each.host, each]))
  return [...new Set([...given, ...byHost.keys()])].map((host) => ({
    state: given.includes(host) ? 'served' : 'local',
    ...states.get(host),
    ...{ host, isGiven: given.includes(host), websites: byHost.get(host) ?? [] },
  }))
}

/** Returns the hosts of the tenant, those of the operator first. */
export function useHostRows() {
  const installation = useQuery(installationQuery)
  const configuration = useQuery(appConfigurationQuery())
  const isReady = installation.data && configuration.data && !configuration.isPlaceholderData
  return {
    rows: isReady ? toRows(installation.data?.hosts ?? [], configuration.data) : undefined,
    claims: installation.data?.hostClaims,
    error: installation.error ?? configuration.error,
  }
}

/**
 * Changes the websites as the server has them now, which also checks again which of their hosts are proven.
 * @throws ApiProblem
 */
export async function changeWebsites(change: (websites: string[]) => string[]) {
  // What the page fetched before may be old, or not be there yet, and the list is replaced as a whole.
  const current = await fetchData(api.GET('/api/configurations/app-configuration'))
  const websiteUrls = change(readWebsites(current as AppConfiguration))
  await fetchData(api.PUT('/api/configurations/app-configuration', { body: { websiteUrls } }))
  await queryClient.invalidateQueries({ queryKey: ['configurations', 'app-configuration'] })
}
