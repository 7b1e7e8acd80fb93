import { Button } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { IconArrowsSort, IconCalculator, IconPlus } from '@tabler/icons-react'
import { Link, Outlet, useParams } from '@tanstack/react-router'
import { api } from '../api/client'
import type { Plan } from '../api/schema'
import type { Column } from '../ui/data-table'
import { useListRows } from '../ui/list-rows'
import { ListTable } from '../ui/list-table'
import { Screen } from '../ui/screen'
import { StateTag } from '../ui/state-tag'
import { AddressFilter } from './address-filter'
import { useListNavigation } from './list-navigation'
import { describePlanPrice } from './price-words'

const STATES = [
  { value: 'true', label: 'On sale' },
  { value: 'false', label: 'Archived' },
]

const columns: Column<Plan>[] = [
  { key: 'name', label: 'Plan', width: 220, isSortable: true, render: ({ name }) => <strong>{name}</strong> },
  { key: 'monthlyPrice', label: 'Price', width: 380, isSortable: true, render: describePlanPrice },
  {
    key: 'limits',
    label: 'Limits',
    width: 220,
    render: ({ limits }) =>
      Object.entries(limits)
        .map(([name, value]) => `${name} ${typeof value === 'object' ? '…' : value}`)
        .join(', '),
  },
  {
    key: 'isActive',
    label: 'State',
    width: 110,
    isSortable: true,
    render: ({ isActive }) => (
      <StateTag label={isActive ? 'On sale' : 'Archived'} tone={isActive ? 'good' : 'neutral'} />
    ),
  },
]

/** What customers can subscribe to. */
export function PlanList() {
  const { search, changeFilters, open } = useListNavigation('/payments/plans')
  const { plan } = useParams({ strict: false }) as { plan?: string }
  const { sort, isActive } = search
  const query = { sort, isActive: isActive as never }
  const list = useListRows(['payments', 'plans', 'list', query], (page) =>
    api.GET('/api/plans', { params: { query: { ...query, ...page } } }),
  )
  const openNew = () => open('all/new')
  useHotkeys([['n', openNew]])
  return (
    <Screen
      title="Plans"
      request={{ method: 'GET', path: '/api/plans', query: search }}
      actions={
        <>
          <Button
            variant="default"
            component={Link}
            to="/payments/simulator"
            leftSection={<IconCalculator size={14} />}
          >
            Simulator
          </Button>
          <Button leftSection={<IconPlus size={14} />} onClick={openNew}>
            New plan
          </Button>
        </>
      }
      toolbar={
        <>
          <AddressFilter
            label="State"
            options={STATES}
            value={isActive}
            onChange={(next) => changeFilters({ isActive: next })}
          />
          {list.count > 1 && (
            <Button variant="subtle" leftSection={<IconArrowsSort size={14} />} onClick={() => open('all/order')}>
              Change order
            </Button>
          )}
        </>
      }
    >
      <ListTable
        label="Plans"
        list={list}
        columns={columns}
        rowKey={({ _id }) => _id}
        sort={sort}
        onSort={(next) => changeFilters({ sort: next })}
        activeKey={plan}
        onOpen={({ _id }) => open(_id)}
        empty={
          isActive
            ? {
                text: 'No plan is in this state.',
                action: { label: 'Show all', onClick: () => changeFilters({ isActive: undefined }) },
              }
            : {
                text: 'There are no plans yet. A plan says what customers pay and what they get.',
                action: { label: 'Create a plan', onClick: openNew },
              }
        }
      />
      <Outlet key={plan} />
    </Screen>
  )
}
