import { and, eq, notInArray } from 'drizzle-orm'
import { configurations } from '../platform/settings/tables'
import type { Tx } from '../storage/port'
import { TERMINAL_STATUSES } from './subscriptions/transitions'
import { subscriptions } from './tables'

/** Returns descriptions of what uses a connection for payments. */
export async function listPaymentUsesOfConnection(tx: Tx, connection: string): Promise<string[]> {
  const row = await tx.select().from(configurations).where(eq(configurations.key, 'payments-configuration')).get()
  const by = and(
    eq(subscriptions.providerSourceId, connection),
    notInArray(subscriptions.status, [...TERMINAL_STATUSES, 'pending', 'abandoned']),
  )
  const running = await tx.$count(subscriptions, by)
  return [
    ...(row?.metadata.paymentSourceId === connection ? ['the payments configuration'] : []),
    ...(running ? [`${running} active subscription${running > 1 ? 's' : ''}`] : []),
  ]
}
