import { getLogShippingState } from '../../backups/log/log-shipper'
import { now } from '../../core/clock'
import { registry } from '../../tenancy/registry'
import { defineGauge } from './collected-metrics'

/** Defines the metrics of backups. */
export function defineBackupMetrics() {
  defineGauge(
    'atoll_backup_behind_seconds',
    'Of the tenant that is furthest behind, for how long writes cannot be restored from continuous backups.',
    [],
    () => {
      const state = getLogShippingState()
      if (!state) return
      const [furthest] = state.unprotected
      return furthest ? Math.max(0, now() - furthest.since) / 1_000 : 0
    },
    'max',
  )
  defineGauge(
    'atoll_backup_behind_tenants',
    'The tenants with writes that cannot be restored from continuous backups yet.',
    [],
    () => getLogShippingState()?.unprotected.length,
    'max',
  )
  defineGauge(
    'atoll_backup_failed_tenants',
    'The tenants whose latest attempt at a backup failed.',
    [],
    async () => {
      const count = 'select count(*) from tenant_backups where problem is not null'
      const [[failed] = []] = await registry.db.query(count).catch(() => []) // others are shown without a registry
      return failed === undefined ? undefined : Number(failed)
    },
    'max',
  )
}
