import { Button } from '@mantine/core'
import { IconRefresh } from '@tabler/icons-react'
import { useMutation } from '@tanstack/react-query'
import { Outlet, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { api } from '../api/client'
import type { ProviderEvent } from '../api/schema'
import type { Column } from '../ui/data-table'
import { useListRows } from '../ui/list-rows'
import { ListTable } from '../ui/list-table'
import { showProblem } from '../ui/notices'
import { RelativeTime } from '../ui/relative-time'
import { Screen } from '../ui/screen'
import { AddressFilter } from './address-filter'
import { replayAll, replayFailed } from './event-replay'
import { useListNavigation } from './list-navigation'
import { PROVIDER_EVENT_STATES, ProviderEventState } from './provider-event-states'
import { findProvider, providerKinds, providers } from './providers'

const PROVIDER_OPTIONS = providerKinds.map((kind) => ({ value: kind, label: providers[kind].label }))

const columns: Column<ProviderEvent>[] = [
  {
    key: 'created',
    label: 'Received',
    width: 130,
    isSortable: true,
    render: ({ created }) => <RelativeTime time={created} />,
  },
  {
    key: 'providerKind',
    label: 'Provider',
    width: 100,
    isSortable: true,
    render: ({ providerKind }) => findProvider(providerKind)?.label ?? providerKind,
  },
  { key: 'type', label: 'Event', width: 280, isSortable: true, render: ({ type }) => type },
  {
    key: 'status',
    label: 'State',
    width: 100,
    isSortable: true,
    render: ({ status }) => <ProviderEventState status={status} />,
  },
  { key: 'outcome', label: 'Why', width: 320, render: ({ outcome }) => outcome },
  {
    key: 'attempts',
    label: 'Attempts',
    width: 90,
    align: 'right',
    isSortable: true,
    render: ({ attempts }) => attempts.toLocaleString(),
  },
]

/** What payment providers sent, and what came of it. */
export function ProviderInbox() {
  const { search, changeFilters, open } = useListNavigation('/payments/inbox')
  const { event } = useParams({ strict: false }) as { event?: string }
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set())
  const { sort, status, providerKind, subscriptionId } = search
  const query = { sort, status, providerKind, subscriptionId }
  const list = useListRows(['payments', 'inbox', 'list', query], (page) =>
    api.GET('/api/payments/events', { params: { query: { ...query, ...page } } }),
  )
  const replaying = useMutation({
    mutationFn: () =>
      marked.size ? replayAll([...marked].toSorted()).then(() => setMarked(new Set())) : replayFailed(),
    onError: showProblem,
  })
  const isFiltered = !!(status || providerKind || subscriptionId)
  return (
    <Screen
      title="Inbox"
      request={{ method: 'GET', path: '/api/payments/events', query: search }}
      actions={
        <Button
          variant="default"
          leftSection={<IconRefresh size={14} />}
          loading={replaying.isPending}
          onClick={() => replaying.mutate()}
        >
          {marked.size ? `Replay ${marked.size} marked` : 'Replay all failed'}
        </Button>
      }
      toolbar={
        <>
          <AddressFilter
            label="State"
            options={PROVIDER_EVENT_STATES}
            value={status}
            onChange={(next) => changeFilters({ status: next })}
          />
          <AddressFilter
            label="Provider"
            options={PROVIDER_OPTIONS}
            value={providerKind}
            onChange={(next) => changeFilters({ providerKind: next })}
          />
        </>
      }
    >
      <ListTable
        label="Inbox"
        list={list}
        columns={columns}
        rowKey={({ _id }) => _id}
        sort={sort ?? '-created'}
        onSort={(next) => changeFilters({ sort: next })}
        selected={marked}
        onSelect={setMarked}
        activeKey={event}
        onOpen={({ _id }) => open(_id)}
        empty={
          isFiltered
            ? {
                text: 'No event matches these filters.',
                action: {
                  label: 'Clear filters',
                  onClick: () =>
                    changeFilters({ status: undefined, providerKind: undefined, subscriptionId: undefined }),
                },
              }
            : {
                text: 'No provider has sent anything yet. Register the address of the webhook with your provider.',
                action: { label: 'Show the address', to: '/payments/configuration' },
              }
        }
      />
      <Outlet key={event} />
    </Screen>
  )
}
