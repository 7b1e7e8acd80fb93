import { eq } from 'drizzle-orm'
import { now } from '../core/clock'
import type { Tx } from '../storage/port'
import { cached } from '../tenancy/cache'
import type { Tenant } from '../tenancy/tenants'
import type { PluginRow } from './plugins'
import { readSecrets } from './secrets'
import { plugins } from './tables'

/** A plugin that works, with the secrets that sign what it is told, the newest first. */
export type CachedPlugin = { plugin: PluginRow; secrets: string[] }

/** A plugin by its id, remembered; undefined when there is none, or it is not active. */
export async function findActivePlugin(tenant: Tenant, id: string): Promise<CachedPlugin | undefined> {
  const found = await cached(tenant, 'plugins', `id ${id}`, async () => {
    const plugin = await tenant.db.select().from(plugins).where(eq(plugins._id, id)).get()
    return plugin && { plugin, secrets: await readSecrets(tenant, id, !!plugin.formerUntil) }
  })
  if (!found?.plugin.active) return
  const { plugin, secrets } = found
  const hasOverlapEnded = !plugin.formerUntil || Date.parse(plugin.formerUntil) <= now()
  return hasOverlapEnded ? { plugin, secrets: secrets.slice(0, 1) } : found
}

/** The id of the plugin to which a path below `/api` belongs. */
export async function findPluginByPath(tenant: Tenant, path: string): Promise<string | undefined> {
  const paths = await cached(tenant, 'plugins', 'paths', async () => {
    const { _id, apiPath, proxyUrl, active } = plugins
    const rows = await tenant.db.select({ _id, apiPath, proxyUrl }).from(plugins).where(eq(active, true))
    return new Map(rows.flatMap(({ _id, apiPath, proxyUrl }) => (apiPath && proxyUrl ? [[apiPath, _id]] : [])))
  })
  return paths.get(path)
}

/** Tells whether there is a plugin with this id. */
export const pluginExists = async (tx: Tx, id: string): Promise<boolean> =>
  !!(await tx.select({ _id: plugins._id }).from(plugins).where(eq(plugins._id, id)).get())

/** The name of the plugin that comes as this user. */
export async function findPluginNameByUser(tenant: Tenant, user: string): Promise<string | undefined> {
  const accounts = await cached(tenant, 'plugins', 'accounts', async () => {
    const { account, name } = plugins
    const rows = await tenant.db.select({ account, name }).from(plugins)
    return new Map(rows.flatMap(({ account, name }) => (account ? [[account, name]] : [])))
  })
  return accounts.get(user)
}
