import { defineArea } from '../jobs/area'
import { settingsShapes, toShapes } from '../platform/settings/tenant-settings'
import { limitSettings } from './limit-settings'
import { removeFullBuckets } from './request-limit'

const REMOVE_INTERVAL_MS = 60_000

/** Rate limits of tenants and their callers. */
export const limits = defineArea({
  name: 'limits',
  provides: [settingsShapes.provide(toShapes(limitSettings))],
  start: () => {
    const timer = setInterval(removeFullBuckets, REMOVE_INTERVAL_MS).unref()
    return { stop: () => clearInterval(timer) }
  },
})
