import { eq } from 'drizzle-orm'
import { now } from '../core/clock'
import { recall } from '../tenancy/memory'
import type { Tenant } from '../tenancy/tenants'
import type { PluginRow } from './plugins'
import { openSecrets } from './secrets'
import { plugins } from './tables'

/** A plugin that works, with the secrets that sign what it is told, the newest first. */
export type Known = { plugin: PluginRow; secrets: string[] }

/** A plugin by its id, remembered; undefined when there is none, or it is not active. */
export async function pluginNamed(tenant: Tenant, id: string): Promise<Known | undefined> {
  const known = await recall(tenant, 'plugins', `id ${id}`, async () => {
    const plugin = await tenant.db.select().from(plugins).where(eq(plugins._id, id)).get()
    return plugin && { plugin, secrets: await openSecrets(tenant, id, !!plugin.formerUntil) }
  })
  if (!known?.plugin.active) return
  const { plugin, secrets } = known
  const over = !plugin.formerUntil || Date.parse(plugin.formerUntil) <= now()
  return over ? { plugin, secrets: secrets.slice(0, 1) } : known
}

/** The id of the plugin to which a path below `/api` belongs. */
export async function pluginAt(tenant: Tenant, path: string): Promise<string | undefined> {
  const paths = await recall(tenant, 'plugins', 'paths', async () => {
    const { _id, apiPath, proxyUrl, active } = plugins
    const rows = await tenant.db.select({ _id, apiPath, proxyUrl }).from(plugins).where(eq(active, true))
    return new Map(rows.flatMap(({ _id, apiPath, proxyUrl }) => (apiPath && proxyUrl ? [[apiPath, _id]] : [])))
  })
  return paths.get(path)
}

/** The name of the plugin that comes as this user. */
export async function pluginBehind(tenant: Tenant, user: string): Promise<string | undefined> {
  const accounts = await recall(tenant, 'plugins', 'accounts', async () => {
    const { account, name } = plugins
    const rows = await tenant.db.select({ account, name }).from(plugins)
    return new Map(rows.flatMap(({ account, name }) => (account ? [[account, name]] : [])))
  })
  return accounts.get(user)
}
