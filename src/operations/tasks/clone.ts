import type { Static } from 'elysia'
import type { ClonedTenant, TenantClone } from '../../backups/shapes'
import { prepareRestoredTenant } from '../../tenancy/restored-tenants'
import { getTenantInfo } from '../../tenancy/tenant-list'
import { toCommandTask } from './command-task'
import type { TaskKind } from './task-kind'

/** Copies a tenant, as it is now, to a new one. */
export const clone: TaskKind<Static<typeof TenantClone>, ClonedTenant> = {
  stoppedMessage: 'The server was stopped during the copy. If the new tenant does not exist, start it again.',
  uses: (tenant, { as }) => ({ reads: [tenant], changes: [as] }),
  async prepare(tenant, { as, withoutSecrets }) {
    await getTenantInfo(tenant)
    await prepareRestoredTenant(as, false)
    const options = withoutSecrets ? ['--without-secrets'] : []
    return toCommandTask(['tenant', 'clone', tenant, as, ...options], (cloned: ClonedTenant) => cloned)
  },
}
