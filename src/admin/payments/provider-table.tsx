import { Anchor, Table } from '@mantine/core'
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

type ProviderTableProps = { connections: readonly IntegrationSource[]; activeId?: string; isEnabled: boolean }

/** The connections to payment providers, with whether they work now. */
export function ProviderTable({ connections, activeId, isEnabled }: ProviderTableProps) {
  if (!connections.length)
    return <EmptyState text="There is no payment provider yet. Add one, and tell it the address of the webhook." />
  return (
    <section>
      <h2>Providers</h2>
      <Table aria-label="Providers" className={classes.providers}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Name</Table.Th>
            <Table.Th>Provider</Table.Th>
            <Table.Th>Money</Table.Th>
            <Table.Th>Connection</Table.Th>
            <Table.Th>Used for</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {connections.map((connection) => (
            <Table.Tr key={connection._id}>
              <Table.Td>
                <Anchor component={Link} to={`/payments/configuration/${connection._id}` as never} size="sm">
                  {connection.name}
                </Anchor>
              </Table.Td>
              <Table.Td>{findProvider(connection.kind)?.label}</Table.Td>
              <Table.Td>
                <MoneyMode connection={connection} />
              </Table.Td>
              <Table.Td>
                <ConnectionState connection={connection} />
              </Table.Td>
              <Table.Td>{connection._id === activeId && isEnabled ? 'New subscriptions' : 'Existing ones'}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </section>
  )
}

/** Whether real money moves, as far as the settings tell. */
function MoneyMode({ connection: { kind, metadata } }: { connection: IntegrationSource }) {
  const isTest = findProvider(kind)?.isTest(metadata)
  if (isTest === undefined) return 'As its key says'
  return isTest ? <StateTag label="Test" tone="warning" /> : 'Real'
}
