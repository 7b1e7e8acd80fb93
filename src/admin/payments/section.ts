import { IconCreditCard } from '@tabler/icons-react'
import type { Section } from '../frame/section'

const roles = ['admin']

/** The section of plans and what is paid for them. */
export const paymentsSection: Section = {
  label: 'Payments',
  path: '/payments',
  icon: IconCreditCard,
  pages: [
    { label: 'Plans', path: '/payments/plans', roles, keywords: 'prices products pricing' },
    { label: 'Coupons', path: '/payments/coupons', roles, keywords: 'discount promotion voucher' },
    { label: 'Price simulator', path: '/payments/simulator', roles, keywords: 'calculate price' },
    { label: 'Subscriptions', path: '/payments/subscriptions', roles, keywords: 'customers billing' },
    { label: 'Invoices', path: '/payments/invoices', roles, keywords: 'receipts billing' },
    { label: 'Inbox', path: '/payments/inbox', roles, keywords: 'stripe paypal paddle webhook provider events' },
    {
      label: 'Configuration',
      path: '/payments/configuration',
      roles,
      keywords: 'stripe paypal paddle provider currency billing',
    },
  ],
  actions: [
    { label: 'New plan', path: '/payments/plans/all/new', roles, keywords: 'create price product' },
    { label: 'New coupon', path: '/payments/coupons/all/new', roles, keywords: 'create discount' },
    { label: 'New subscription', path: '/payments/subscriptions/all/new', roles, keywords: 'create grant' },
  ],
}
