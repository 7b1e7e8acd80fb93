import { Button } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { IconCalculator, IconPlus } from '@tabler/icons-react'
import { Link, Outlet, useParams } from '@tanstack/react-router'
import { api } from '../api/client'
import type { Coupon } from '../api/schema'
import type { Column } from '../ui/data-table'
import { useListRows } from '../ui/list-rows'
import { ListTable } from '../ui/list-table'
import { Screen } from '../ui/screen'
import { StateTag } from '../ui/state-tag'
import { AddressFilter } from './address-filter'
import { useListNavigation } from './list-navigation'
import { describeBenefit, describeDiscount, describeValidity } from './price-words'

const STATES = [
  { value: 'true', label: 'Active' },
  { value: 'false', label: 'Inactive' },
]

/** The state of a coupon now: whether its code would be taken. */
function CouponState({ coupon }: { coupon: Coupon }) {
  const { isActive, validFrom, validUntil, maxRedemptions, currentRedemptions = 0 } = coupon
  if (!isActive) return <StateTag label="Inactive" />
  if (validUntil && Date.parse(validUntil) <= Date.now()) return <StateTag label="Expired" />
  if (typeof maxRedemptions === 'number' && currentRedemptions >= maxRedemptions) return <StateTag label="Used up" />
  if (validFrom && Date.parse(validFrom) > Date.now()) return <StateTag label="Not yet valid" tone="warning" />
  return <StateTag label="Active" tone="good" />
}

const columns: Column<Coupon>[] = [
  { key: 'code', label: 'Code', width: 160, isSortable: true, render: ({ code }) => <strong>{code}</strong> },
  {
    key: 'discount',
    label: 'Discount',
    width: 320,
    render: (coupon) => `${describeDiscount(coupon)} ${describeBenefit(coupon)}`,
  },
  {
    key: 'currentRedemptions',
    label: 'Redeemed',
    width: 110,
    align: 'right',
    isSortable: true,
    render: ({ currentRedemptions = 0, maxRedemptions }) =>
      typeof maxRedemptions === 'number'
        ? `${currentRedemptions.toLocaleString()} of ${maxRedemptions.toLocaleString()}`
        : currentRedemptions.toLocaleString(),
  },
  {
    key: 'validUntil',
    label: 'Redeemable',
    width: 230,
    isSortable: true,
    render: (coupon) => describeValidity(coupon),
  },
  {
    key: 'isActive',
    label: 'State',
    width: 120,
    isSortable: true,
    render: (coupon) => <CouponState coupon={coupon} />,
  },
]

/** The codes that make a subscription cheaper. */
export function CouponList() {
  const { search, changeFilters, open } = useListNavigation('/payments/coupons')
  const { coupon } = useParams({ strict: false }) as { coupon?: string }
  const { sort, isActive } = search
  const query = { sort, isActive: isActive as never }
  const list = useListRows(['payments', 'coupons', 'list', query], (page) =>
    api.GET('/api/coupons', { params: { query: { ...query, ...page } } }),
  )
  const openNew = () => open('all/new')
  useHotkeys([['n', openNew]])
  return (
    <Screen
      title="Coupons"
      request={{ method: 'GET', path: '/api/coupons', query: search }}
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
            New coupon
          </Button>
        </>
      }
      toolbar={
        <AddressFilter
          label="State"
          options={STATES}
          value={isActive}
          onChange={(next) => changeFilters({ isActive: next })}
        />
      }
    >
      <ListTable
        label="Coupons"
        list={list}
        columns={columns}
        rowKey={({ _id }) => _id}
        sort={sort}
        onSort={(next) => changeFilters({ sort: next })}
        activeKey={coupon}
        onOpen={({ _id }) => open(_id)}
        empty={
          isActive
            ? {
                text: 'There is no coupon in this state.',
                action: { label: 'Show all', onClick: () => changeFilters({ isActive: undefined }) },
              }
            : { text: 'There are no coupons yet.', action: { label: 'Create a coupon', onClick: openNew } }
        }
      />
      <Outlet key={coupon} />
    </Screen>
  )
}
