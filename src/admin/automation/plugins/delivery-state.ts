import type { DeliveryState } from './plugin-queries'

/** How the states of a delivery are called, and whether they are good. */
export const DELIVERY_STATE_WORDS: Record<
  DeliveryState,
  { label: string; tone: 'good' | 'warning' | 'bad' | 'neutral' }
> = {
  waiting: { label: 'Waiting', tone: 'neutral' },
  failing: { label: 'Failing', tone: 'warning' },
  delivered: { label: 'Delivered', tone: 'good' },
  dead: { label: 'Given up', tone: 'bad' },
  canceled: { label: 'Cancelled', tone: 'neutral' },
}
