import { IconCreditCard } from '@tabler/icons-react'
import type { Section } from '../frame/section'

const roles = ['admin']

/** The section of plans and what is paid for them. */
export const paymentsSection: Section = {
  label: 'Payments',
  path: '/payments',
  icon: IconCreditCard,
  pages: [
    { label: 'Plans', path: '/payments/plans', roles },
    { label: 'Coupons', path: '/payments/coupons', roles },
    { label: 'Price simulator', path: '/payments/simulator', roles },
    { label: 'Subscriptions', path: '/payments/subscriptions', roles },
    { label: 'Invoices', path: '/payments/invoices', roles },
    { label: 'Inbox', path: '/payments/inbox', roles },
    { label: 'Configuration', path: '/payments/configuration', roles },
  ],
}
