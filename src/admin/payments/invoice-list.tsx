import { Outlet, useParams } from '@tanstack/react-router'
import { api } from '../api/client'
import type { Invoice } from '../api/schema'
import type { Column } from '../ui/data-table'
import { useListRows } from '../ui/list-rows'
import { ListTable } from '../ui/list-table'
import { Money } from '../ui/money'
import { RelativeTime } from '../ui/relative-time'
import { Screen } from '../ui/screen'
import { AddressFilter } from './address-filter'
import { INVOICE_STATES, InvoiceState } from './invoice-states'
import { useListNavigation } from './list-navigation'
import { PayerName, PayerSelect } from './payer'
import { formatDay } from './price-words'
import { findProvider } from './providers'

const columns: Column<Invoice>[] = [
  { key: 'payer', label: 'Customer', width: 230, render: (row) => <PayerName payer={row} /> },
  {
    key: 'amount',
    label: 'Amount',
    width: 130,
    align: 'right',
    isSortable: true,
    render: ({ amount, currency }) => <Money amount={amount} currency={currency} />,
  },
  {
    key: 'status',
    label: 'State',
    width: 100,
    isSortable: true,
    render: ({ status }) => <InvoiceState status={status} />,
  },
  {
    key: 'period',
    label: 'Period',
    width: 220,
    render: ({ periodStart, periodEnd }) =>
      periodStart && periodEnd ? `${formatDay(periodStart)} to ${formatDay(periodEnd)}` : undefined,
  },
  {
    key: 'paidAt',
    label: 'Paid',
    width: 130,
    isSortable: true,
    render: ({ paidAt }) => paidAt && <RelativeTime time={paidAt} />,
  },
  {
    key: 'provider',
    label: 'Provider',
    width: 100,
    render: ({ providerKind }) => findProvider(providerKind)?.label ?? providerKind,
  },
  {
    key: 'created',
    label: 'Created',
    width: 130,
    isSortable: true,
    render: ({ created }) => <RelativeTime time={created} />,
  },
]

/** The invoices, as providers report them. */
export function InvoiceList() {
  const { search, changeFilters, open } = useListNavigation('/payments/invoices')
  const { invoice } = useParams({ strict: false }) as { invoice?: string }
  const { sort, status, subscriptionId, billableEntityType, billableEntityId } = search
  const query = { sort, status, subscriptionId, billableEntityType, billableEntityId }
  const list = useListRows(['payments', 'invoices', 'list', query], (page) =>
    api.GET('/api/invoices', { params: { query: { ...query, ...page } } }),
  )
  const isFiltered = !!(status || subscriptionId || billableEntityId)
  const noPayer = { billableEntityType: undefined, billableEntityId: undefined }
  return (
    <Screen
      title="Invoices"
      request={{ method: 'GET', path: '/api/invoices', query: search }}
      toolbar={
        <>
          <AddressFilter
            label="State"
            options={INVOICE_STATES}
            value={status}
            onChange={(next) => changeFilters({ status: next })}
          />
          <PayerSelect
            label="Customer"
            placeholder="Customer"
            size="xs"
            value={
              billableEntityId
                ? { billableEntityType: billableEntityType as 'user' | 'workspace', billableEntityId }
                : undefined
            }
            onChange={(payer) => changeFilters(payer ?? noPayer)}
          />
        </>
      }
    >
      <ListTable
        label="Invoices"
        list={list}
        columns={columns}
        rowKey={({ _id }) => _id}
        sort={sort ?? '-created'}
        onSort={(next) => changeFilters({ sort: next })}
        activeKey={invoice}
        onOpen={({ _id }) => open(_id)}
        empty={
          isFiltered
            ? {
                text: 'No invoice matches these filters.',
                action: {
                  label: 'Clear filters',
                  onClick: () => changeFilters({ status: undefined, subscriptionId: undefined, ...noPayer }),
                },
              }
            : {
                text: 'There are no invoices yet. Providers report them when they charge a customer.',
                action: { label: 'Show the providers', to: '/payments/configuration' },
              }
        }
      />
      <Outlet key={invoice} />
    </Screen>
  )
}
