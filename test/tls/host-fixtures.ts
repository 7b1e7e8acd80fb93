import { writeInvalidating } from '../../src/tenancy/cache'
import { registry } from '../../src/tenancy/registry'
import { hosts } from '../../src/tenancy/tables'

/** Takes the hosts away from the tenants of other test files, for which certificates would be ordered as well. */
export const forgetHosts = () => writeInvalidating(registry, 'tenants', (tx) => tx.delete(hosts))
