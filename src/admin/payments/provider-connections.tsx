import { Anchor, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api, fetchData } from '../api/client'
import type { IntegrationSource } from '../api/schema'
import { EmptyState } from '../ui/empty-state'
import { StateTag } from '../ui/state-tag'
import classes from './payments.module.css'
import { findProvider } from './providers'

/** Asks a provider by one harmless call whether it accepts the connection. */
export const connectionCheckQuery = ({ _id: id, updated }: Pick<IntegrationSource, '_id' | 'updated'>) => ({
  queryKey: ['payments', 'connections', 'check', id, updated],
  queryFn: () => fetchData(api.POST('/api/integration-sources/{id}/status', { params: { path: { id } } })),
  staleTime: 60_000,
})

/** Whether a provider answers, with its words when it does not. */
export function ConnectionState({ connection }: { connection: IntegrationSource }) {
  const { data, isFetching } = useQuery(connectionCheckQuery(connection))
  if (!data) return isFetching ? <StateTag label="Asking…" /> : null
  const isConnected = data.status === 'connected'
  return (
    <>
      <StateTag label={isConnected ? 'Connected' : 'Not connected'} tone={isConnected ? 'good' : 'bad'} />
      {!isConnected && <span className={classes.checkMessage}>{data.message}</span>}
    </>
  )
}

type ProviderListProps = { connections: readonly IntegrationSource[]; activeId?: string; isEnabled: boolean }

/** The connections to payment providers, with whether they work now. */
export function ProviderList({ connections, activeId, isEnabled }: ProviderListProps) {
  if (!connections.length)
    return <EmptyState text="There is no payment provider yet. Add one, and tell it the address of the webhook." />
  return (
    <section>
      <Title order={2}>Providers</Title>
      <ul className={classes.list} aria-label="Providers">
        {connections.map((connection) => (
          <li key={connection._id} className={classes.provider}>
            <Anchor component={Link} to={`/payments/configuration/${connection._id}` as never} fw={500}>
              {connection.name}
            </Anchor>
            <ConnectionState connection={connection} />
            <ProviderMode connection={connection} />
            <span className={classes.quiet}>
              {findProvider(connection.kind)?.label},{' '}
              {connection._id === activeId && isEnabled ? 'for new subscriptions' : 'for existing subscriptions'}
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

/** Says that no real money moves, as far as the settings tell. */
const ProviderMode = ({ connection: { kind, metadata } }: { connection: IntegrationSource }) =>
  findProvider(kind)?.isTest(metadata) ? <StateTag label="Test" tone="warning" /> : null
