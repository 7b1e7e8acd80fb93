import type { Static } from 'elysia'
import { findBackup } from '../../backups/backup-list'
import type { RestoredTenant, TenantRestore } from '../../backups/shapes'
import { requireConfiguredTarget } from '../../backups/tenant-backups'
import { badRequest } from '../../core/problem'
import { prepareRestoredTenant } from '../../tenancy/restored-tenants'
import { assertTenantId } from '../../tenancy/tenants'
import { toCommandTask } from './command-task'
import type { TaskKind } from './task-kind'

/** Restores a backup of a tenant in the target of the settings: as a new tenant, or in place of its data. */
export const restore: TaskKind<Static<typeof TenantRestore>, RestoredTenant> = {
  stoppedMessage: 'The server was stopped during the restore. Look at the tenant, and start the restore again.',
  uses: (tenant, { as }) => ({ reads: [], changes: [as ?? tenant] }),
  async prepare(tenant, { backup, as, dropSecrets }) {
    assertTenantId(tenant)
    const address = `${requireConfiguredTarget()}/${tenant}/${backup}`
    if (/[/\\]|^\./.test(backup)) badRequest({ path: '/backup', message: 'backup is the name of a folder.' })
    await findBackup(address)
    await prepareRestoredTenant(as ?? tenant, !as)
    const options = [...(as ? ['--as', as] : ['--yes']), ...(dropSecrets ? ['--drop-secrets'] : [])]
    return toCommandTask(
      ['restore', address, ...options],
      ({ restored }: { restored: RestoredTenant[] }) => restored[0]!,
    )
  },
}

/** Returns the input of a restore. @throws 400 INVALID_INPUT when replaced data are not confirmed by the tenant's id */
export function requireConfirmedRestore(tenant: string, input: Static<typeof TenantRestore>, confirm?: string) {
  if (input.as || confirm === tenant) return input
  return badRequest({
    path: 'confirm',
    message: `This replaces all data of the tenant. Add ?confirm=${tenant}, or name a new tenant in as.`,
  })
}
