import { log, logError } from '../core/log'
import { listOutdatedTenants, migrateAndRecord } from '../tenancy/schema-versions'

const START_DELAY_MS = 2_000 // requests of a new server come first
const PAUSE_MS = 20 // between two tenants
const PAGE = 100

/**
 * Brings the databases of all tenants up to date in the background, one after the other: those that nobody uses would
 * otherwise stay at an old version. Each result is recorded, so that another start goes on where this one ended.
 */
export function startSchemaSweep(delayMs = START_DELAY_MS): { stop(): void; finished: Promise<void> } {
  const state = { stopped: false }
  const sweep = async () => {
    await new Promise((resolve) => setTimeout(resolve, delayMs).unref())
    let [migrated, failed] = [0, 0]
    for (let after = ''; !state.stopped; ) {
      const page = await listOutdatedTenants(after, PAGE)
      for (const tenant of page) {
        if (state.stopped) return
        const { error } = await migrateAndRecord(tenant)
        if (error) logError('MIGRATION_FAILED', { tenant, reason: error })
        if (error) failed++
        else migrated++
        await Bun.sleep(PAUSE_MS)
      }
      after = page.at(-1) ?? ''
      if (page.length < PAGE) break
    }
    if (migrated + failed) log.info({ event: 'migrated', tenants: migrated, failed })
  }
  const finished = sweep().catch((cause) => logError('MIGRATION_FAILED', { cause }))
  return {
    stop() {
      state.stopped = true
    },
    finished,
  }
}
