import { config } from '../config'
import { DAY_MS, HOUR_MS, MINUTE_MS, now, toIsoString } from '../core/clock'
import { log, logError } from '../core/log'
import { repeatWork } from '../core/repeated-work'
import { isFirstProcess } from '../core/server-processes'
import type { BackgroundWork } from '../jobs/area'
import { beginRemoval, type ContentRemains, endRemoval, listContentRemains } from '../tenancy/content-remains'
import { tryClaim } from '../tenancy/databases'
import { isRegistered } from '../tenancy/tenant-list'
import { s3ContentStore } from './stores/index'
import type { S3ContentStore } from './stores/s3'

type RemovingStore = Pick<S3ContentStore, 'removePage'>

const KEPT_MS = 7 * DAY_MS // so long somebody may notice that the tenant should come back

/**
 * Removes the contents that tenants deleted a week ago have left in a store that speaks S3, until the signal is aborted.
 * What was interrupted goes on with the next call. @throws 503 FILE_STORE_UNAVAILABLE
 */
export async function removeDeletedContents(store: RemovingStore, signal: AbortSignal): Promise<void> {
  const until = toIsoString(now() - KEPT_MS)
  for (const remains of await listContentRemains(until)) {
    signal.throwIfAborted()
    if (await beginRemoval(remains, until)) await removeContents(store, remains, signal)
  }
}

async function removeContents(store: RemovingStore, remains: ContentRemains, signal: AbortSignal) {
  const { tenant } = remains
  let [removed, after]: [number, string | undefined] = [0, '']
  while (after !== undefined) {
    signal.throwIfAborted()
    // A folder may have been registered by an earlier version of Atoll.
    if (await isRegistered(tenant)) break
    const page = await store.removePage(tenant, after)
    removed += page.removed
    after = page.next
  }
  await endRemoval(remains)
  log.info({ event: 'deleted-contents-removed', tenant, contents: removed })
}

/** Removes the contents of deleted tenants every hour. Of several servers one does it. */
export function startContentRemoval(delayMs = MINUTE_MS, intervalMs = HOUR_MS): BackgroundWork {
  const store = s3ContentStore()
  if (!store || !isFirstProcess()) return {}
  return repeatWork((signal) => runClaimed(store, signal), intervalMs, delayMs)
}

async function runClaimed(store: RemovingStore, signal: AbortSignal) {
  try {
    await using claim = config.ATOLL_DATABASE_URL ? await tryClaim('content removal') : undefined
    if (!config.ATOLL_DATABASE_URL || claim) await removeDeletedContents(store, signal)
  } catch (cause) {
    if (!signal.aborted) logError('CONTENT_REMOVAL_FAILED', { cause })
  }
}
