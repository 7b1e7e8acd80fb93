import { Button } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { IconPlus } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { Outlet, useParams } from '@tanstack/react-router'
import { useMemo } from 'react'
import { api } from '../api/client'
import type { Plan, Subscription } from '../api/schema'
import type { Column } from '../ui/data-table'
import { useListRows } from '../ui/list-rows'
import { ListTable } from '../ui/list-table'
import { RelativeTime } from '../ui/relative-time'
import { Screen } from '../ui/screen'
import { AddressFilter } from './address-filter'
import { useListNavigation } from './list-navigation'
import { PayerName, PayerSelect } from './payer'
import type { Payer } from './payer-queries'
import { plansQuery } from './payment-queries'
import { formatDay } from './price-words'
import { RevenueLine } from './revenue-line'
import { describeSubscriptionPrice, STATUS_OPTIONS, SubscriptionState } from './subscription-states'

const toColumns = (plans: readonly Plan[]): Column<Subscription>[] => [
  { key: 'payer', label: 'Customer', width: 230, render: (row) => <PayerName payer={row} /> },
  {
    key: 'planId',
    label: 'Plan',
    width: 160,
    isSortable: true,
    render: ({ planId }) => plans.find(({ _id }) => _id === planId)?.name ?? planId.slice(0, 8),
  },
  { key: 'status', label: 'State', width: 110, isSortable: true, render: (row) => <SubscriptionState {...row} /> },
  { key: 'price', label: 'Pays', width: 160, align: 'right', render: describeSubscriptionPrice },
  { key: 'couponCode', label: 'Coupon', width: 110, render: ({ couponCode }) => couponCode },
  {
    key: 'currentPeriodEnd',
    label: 'Period ends',
    width: 140,
    isSortable: true,
    render: ({ currentPeriodEnd }) => currentPeriodEnd && formatDay(currentPeriodEnd),
  },
  {
    key: 'created',
    label: 'Created',
    width: 140,
    isSortable: true,
    render: ({ created }) => <RelativeTime time={created} />,
  },
]

/** Returns who the address names as the payer. */
const toPayer = ({ billableEntityType: type, billableEntityId: id }: Record<string, string>): Payer | undefined =>
  id && (type === 'user' || type === 'workspace') ? { billableEntityType: type, billableEntityId: id } : undefined

/** Who is subscribed to what. Filters and order are in the address, as programs write them. */
export function SubscriptionList() {
  const { search, changeFilters, open } = useListNavigation('/payments/subscriptions')
  const { subscription } = useParams({ strict: false }) as { subscription?: string }
  const { data: plans = [] } = useQuery(plansQuery)
  const { sort, status, planId, billableEntityType, billableEntityId, hasConflict } = search
  const query = {
    sort,
    status,
    planId,
    billableEntityType,
    billableEntityId,
    hasConflict: hasConflict === 'true' || undefined,
  }
  const list = useListRows(['payments', 'subscriptions', 'list', query], (page) =>
    api.GET('/api/subscriptions', { params: { query: { ...query, ...page } } }),
  )
  const columns = useMemo(() => toColumns(plans), [plans])
  const isFiltered = !!(status || planId || billableEntityId || hasConflict)
  const clear = () =>
    changeFilters({
      ...{ status: undefined, planId: undefined, billableEntityType: undefined, billableEntityId: undefined },
      hasConflict: undefined,
    })
  const openNew = () => open('all/new')
  useHotkeys([['n', openNew]])
  return (
    <Screen
      title="Subscriptions"
      request={{ method: 'GET', path: '/api/subscriptions', query: search }}
      actions={
        <Button leftSection={<IconPlus size={14} />} onClick={openNew}>
          New subscription
        </Button>
      }
      toolbar={
        <>
          <AddressFilter
            label="State"
            options={STATUS_OPTIONS}
            value={status}
            onChange={(next) => changeFilters({ status: next })}
          />
          <AddressFilter
            label="Plan"
            options={plans.map(({ _id, name }) => ({ value: _id, label: name }))}
            value={planId}
            onChange={(next) => changeFilters({ planId: next })}
          />
          <PayerSelect
            label="Customer"
            placeholder="Customer"
            size="xs"
            value={toPayer(search)}
            onChange={(payer) => changeFilters(payer ?? { billableEntityType: undefined, billableEntityId: undefined })}
          />
        </>
      }
    >
      <div className="entities">
        <RevenueLine />
        <ListTable
          label="Subscriptions"
          list={list}
          columns={columns}
          rowKey={({ _id }) => _id}
          sort={sort ?? '-created'}
          onSort={(next) => changeFilters({ sort: next })}
          activeKey={subscription}
          onOpen={({ _id }) => open(_id)}
          empty={
            isFiltered
              ? { text: 'No subscription matches these filters.', action: { label: 'Clear filters', onClick: clear } }
              : {
                  text: 'No subscriptions yet. Customers subscribe by checkout, or you create a subscription for them.',
                  action: { label: 'Create a subscription', onClick: openNew },
                }
          }
        />
      </div>
      <Outlet key={subscription} />
    </Screen>
  )
}
