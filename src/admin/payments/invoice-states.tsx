import type { Invoice } from '../api/schema'
import { StateTag } from '../ui/state-tag'

const STATES: Record<Invoice['status'], [label: string, tone: 'good' | 'warning' | 'neutral']> = {
  paid: ['Paid', 'good'],
  open: ['Open', 'warning'],
  void: ['Void', 'neutral'],
}

/** The states with their words, for filters. */
export const INVOICE_STATES = Object.entries(STATES).map(([value, [label]]) => ({ value, label }))

/** The state of an invoice. */
export const InvoiceState = ({ status }: { status: Invoice['status'] }) => {
  const [label, tone] = STATES[status]
  return <StateTag label={label} tone={tone} />
}
