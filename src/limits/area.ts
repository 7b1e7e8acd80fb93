import { defineArea } from '../jobs/area'
import { settingsShapes, toShapes } from '../platform/settings/tenant-settings'
import { measureStoredBytes } from '../tenancy/database-size'
import type { Tenant } from '../tenancy/tenants'
import { removeOldUse } from './daily-use'
import { limitSettings } from './limit-settings'
import { checkQuotas } from './quota-overview'
import { forgetIdleUse, storedBytes, useMeasures } from './quota-use'
import { removeFullBuckets } from './request-limit'

const REMOVE_INTERVAL_MS = 60_000

async function measureStorage(tenant: Tenant) {
  let bytes = 0
  for (const measure of storedBytes()) bytes += await measure(tenant)
  return bytes
}

/** Rate limits of tenants and their callers, and quotas of tenants. */
export const limits = defineArea({
  name: 'limits',
  housekeeping: { quotas: checkQuotas, 'old daily use': removeOldUse },
  provides: [
    settingsShapes.provide(toShapes(limitSettings)),
    useMeasures.provide({ storage: measureStorage }),
    storedBytes.provide([measureStoredBytes]),
  ],
  start: () => {
    const removeUnneeded = () => {
      removeFullBuckets()
      forgetIdleUse()
    }
    const timer = setInterval(removeUnneeded, REMOVE_INTERVAL_MS).unref()
    return { stop: () => clearInterval(timer) }
  },
})
