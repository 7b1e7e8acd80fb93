import { desc } from 'drizzle-orm'
import { cached } from '../tenancy/cache'
import type { Tenant } from '../tenancy/tenants'
import { isHashedName } from './hashed-name'
import { mediaTypeOf } from './media-type'
import { type SiteFile, siteDeployments } from './tables'

/** A file as it is served. */
export type ServedFile = SiteFile & { type: string; isImmutable: boolean }
/** The deployment that is served; one without files where there is no site. */
export type ActiveSite = { deployment: string; spa: boolean; files: ReadonlyMap<string, ServedFile> }

const NO_SITE: ActiveSite = { deployment: '', spa: false, files: new Map() }

/** Returns the active deployment of a tenant's site, without a promise when it is cached. */
export const getActiveSite = (tenant: Tenant): ActiveSite | Promise<ActiveSite> =>
  cached(tenant, 'sites', 'active', async () => {
    const { _id, spa, manifest, activation } = siteDeployments
    const row = await tenant.db
      .select({ _id, spa, manifest })
      .from(siteDeployments)
      .orderBy(desc(activation), desc(_id))
      .limit(1)
      .get()
    return row ? { deployment: row._id, spa: row.spa, files: toServedFiles(row.manifest) } : NO_SITE
  })

const toServedFiles = (manifest: readonly SiteFile[]) =>
  new Map(
    manifest.map((file) => {
      const { path } = file
      return [path, { ...file, type: mediaTypeOf(path), isImmutable: isHashedName(path) }] as const
    }),
  )
