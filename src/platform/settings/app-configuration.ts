import { now, toIsoString } from '../../core/clock'
import { writeInvalidating } from '../../tenancy/cache'
import type { Tenant } from '../../tenancy/tenants'
import { configurations } from './tables'

/** The key of the app configuration, which always exists for clients. */
export const APP_CONFIGURATION = 'app-configuration'

type Row = typeof configurations.$inferSelect

/** Returns a configuration of the server as it is before its first write. */
export const defaultConfiguration = (key: string, version: number): Row => ({
  ...{
    _id: Bun.randomUUIDv7(),
    key,
    public: key === APP_CONFIGURATION,
    kind: '',
    description: '',
    version,
    metadata: {},
  },
  ...{ created: toIsoString(now()), updated: toIsoString(now()) },
})

/** Names the product of a new tenant, which has no configuration yet. */
export const nameProduct = (tenant: Tenant, name: string) =>
  writeInvalidating(tenant, 'configurations', (tx) =>
    tx.insert(configurations).values({ ...defaultConfiguration(APP_CONFIGURATION, 1), metadata: { name } }),
  )
