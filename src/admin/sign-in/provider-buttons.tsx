import { Button } from '@mantine/core'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'

const NAMES: Record<string, string> = { github: 'GitHub', gitlab: 'GitLab', linkedin: 'LinkedIn' }

/** Returns what a sign-in provider is called. */
export const toProviderName = (provider: string) =>
  NAMES[provider] ?? `${provider.charAt(0).toUpperCase()}${provider.slice(1)}`

/** The providers by which users of the tenant may sign in. */
export const providersQuery = queryOptions({
  queryKey: ['sign-in providers'],
  queryFn: () => fetchData(api.GET('/api/auth/providers')),
  staleTime: 60_000,
  // The sign-in works without them.
  retry: false,
})

/** The ways besides passwords and passkeys in which users of the tenant may sign in. */
export const methodsQuery = queryOptions({
  queryKey: ['sign-in methods'],
  queryFn: () => fetchData(api.GET('/api/signin/methods')),
  staleTime: 60_000,
  retry: false,
})

/** A button for each provider that the tenant has set up. */
export function ProviderButtons() {
  const { data } = useQuery(methodsQuery)
  return data?.providers.map((provider) => (
    <Button
      key={provider}
      variant="default"
      size="sm"
      component="a"
      href={`/api/auth/${encodeURIComponent(provider)}?returnUrl=/admin/link`}
    >
      Continue with {toProviderName(provider)}
    </Button>
  ))
}
