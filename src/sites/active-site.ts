import { desc } from 'drizzle-orm'
import { cached } from '../tenancy/cache'
import type { Tenant } from '../tenancy/tenants'
import { isHashedName } from './hashed-name'
import { mediaTypeOf } from './media-type'
import { type SiteFile, siteDeployments } from './tables'

/** A file as it is served. */
export type ServedFile = SiteFile & { type: string; isImmutable: boolean }
/**
 * The deployment that is served; one without files where there is no site. `modified` is when it became active, in seconds.
 */
export type ActiveSite = { deployment: string; modified: number; spa: boolean; files: ReadonlyMap<string, ServedFile> }

const NO_SITE: ActiveSite = { deployment: '', modified: 0, spa: false, files: new Map() }

/** Returns the active deployment of a tenant's site, without a promise when it is cached. */
export const getActiveSite = (tenant: Tenant): ActiveSite | Promise<ActiveSite> =>
  cached(tenant, 'sites', 'active', async () => {
    const { _id, spa, manifest, activation, created } = siteDeployments
    const row = await tenant.db
      .select({ _id, spa, manifest, activation, created })
      .from(siteDeployments)
      .orderBy(desc(activation), desc(_id))
      .limit(1)
      .get()
    if (!row) return NO_SITE
    const modified = Math.max(row.activation, Math.floor(Date.parse(row.created) / 1000))
    return { deployment: row._id, modified, spa: row.spa, files: toServedFiles(row.manifest) }
  })

const toServedFiles = (manifest: readonly SiteFile[]) =>
  new Map(
    manifest.map((file) => {
      const { path } = file
      return [path, { ...file, type: mediaTypeOf(path), isImmutable: isHashedName(path) }] as const
    }),
  )
