import { IconCreditCard } from '@tabler/icons-react'
import type { Section } from '../frame/section'

/** The section of plans and what is paid for them. */
export const paymentsSection: Section = { label: 'Payments', path: '/payments', icon: IconCreditCard, pages: [] }
