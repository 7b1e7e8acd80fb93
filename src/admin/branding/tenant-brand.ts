import { queryOptions, useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { api, fetchData } from '../api/client'
import type { AppConfiguration } from '../api/schema'
import { getNamedTenant } from '../api/session'
import { parseHexColor } from './contrast'

/** How a tenant looks: parts of its `app-configuration`, which everybody may read. */
export type Branding = { name?: string; logo?: string; accentColor?: string }

const MAX_NAME_LENGTH = 60

/** Whether the page may show a picture: the policy of the page allows none from elsewhere. */
export const isShownPicture = (address: string) => /^(data:image\/|\/(?!\/))/.test(address)

/** Returns the branding in the metadata of an `app-configuration`, whose keys are free; what makes no sense is left out. */
function readBranding({ name, logo, accentColor }: Record<string, unknown> = {}): Branding {
  const color = parseHexColor(accentColor)
  return {
    ...(typeof name === 'string' && name.trim() && { name: name.trim().slice(0, MAX_NAME_LENGTH) }),
    ...(typeof logo === 'string' && isShownPicture(logo) && { logo }),
    ...(color && { accentColor: color }),
  }
}

/** The operator's pages belong to no tenant. */
const isOfTenant = () => !/^\/admin\/operator(\/|$)/.test(location.pathname)

const storageKey = () => `atoll-branding:${getNamedTenant() ?? ''}`

/** Returns the configuration as this browser last saw it, so that the first picture has the right colours. */
function readCached(): AppConfiguration | undefined {
  try {
    return { metadata: readBranding(JSON.parse(localStorage.getItem(storageKey()) ?? '{}')) }
  } catch {
    return
  }
}

function cacheBranding({ metadata }: AppConfiguration) {
  try {
    localStorage.setItem(storageKey(), JSON.stringify(readBranding(metadata)))
  } catch {
    // The browser has no room or forbids it; the page works without.
  }
}

/** The public configuration of the tenant. */
export const appConfigurationQuery = () =>
  queryOptions({
    queryKey: ['configurations', 'app-configuration', getNamedTenant() ?? ''],
    queryFn: async () => {
      const configuration = await fetchData(api.GET('/api/configurations/app-configuration'))
      if (configuration) cacheBranding(configuration)
      return configuration as AppConfiguration
    },
    enabled: isOfTenant(),
    placeholderData: isOfTenant() ? readCached : undefined,
    staleTime: 60_000,
  })

/** Returns how the tenant looks. */
export const useBranding = (): Branding => readBranding(useQuery(appConfigurationQuery()).data?.metadata)

/** Returns what the address calls the tenant: nothing where it is an IP address. */
function readHostName(): string | undefined {
  const [first = ''] = location.hostname.split('.')
  return /^[a-z][a-z0-9-]*$/.test(first) && first !== 'localhost' ? first : undefined
}

/** Returns the name of the product, else what the tab or the address calls the tenant. */
export function useProductName(): string {
  const { name } = useBranding()
  return isOfTenant() ? (name ?? getNamedTenant() ?? readHostName() ?? 'Atoll') : 'Atoll'
}

/** Shows the title of a screen in the browser's tab, with the name of the product. */
export function useDocumentTitle(title: string) {
  const name = useProductName()
  useEffect(() => {
    document.title = `${title} · ${name}`
  }, [title, name])
}
