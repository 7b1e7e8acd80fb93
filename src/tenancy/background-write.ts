import type { Tx } from '../storage/port'
import { costlyWork } from './fair-queue'
import type { Tenant } from './tenants'

const CALLER = 'background'

/**
 * Runs a slice of long work as a write of its own, when it is the tenant's turn, and returns its result. Requests have the
 * thread for longer than slices do, and other writers of the tenant most of the time. `onWritten` gets how long the slice
 * held the writer (ms).
 */
export async function writeInBackground<T>(
  { tenant, write }: Pick<Tenant, 'tenant' | 'write'>,
  work: (tx: Tx) => Promise<T>,
  onWritten?: (ms: number) => void,
): Promise<T> {
  // The slice begins later, once the writer is free, so only its turn is awaited here.
  await costlyWork.run({ tenant, caller: CALLER }, async () => {})
  const onThreadHeld = (ms: number) => costlyWork.chargeThreadTime(ms, { isBackground: true })
  return write(work, { background: true, onThreadHeld, onWritten })
}
