import { desc, eq, inArray, max } from 'drizzle-orm'
import type { Ctx } from '../accounts/context'
import type { ContentNames } from '../backups/contents/content-names'
import { now, toIsoString } from '../core/clock'
import { notFound, Problem } from '../core/problem'
import { parseFlag, parseOptional, success } from '../core/shapes'
import { openQuota } from '../limits/quota-check'
import type { Tx } from '../storage/port'
import { writeInvalidating } from '../tenancy/cache'
import type { Tenant } from '../tenancy/tenants'
import { storeSite } from './encoded-files'
import type { Deployment } from './shapes'
import { type SiteFile, siteDeployments } from './tables'
import { listSiteUrls } from './urls'

const MAX_DEPLOYMENTS = 10

const { _id, activation, spa, files, bytes, by, created, manifest } = siteDeployments
const listed = { _id, activation, spa, files, bytes, by, created }
type DeploymentRow = Omit<typeof siteDeployments.$inferSelect, 'manifest'>

/** Returns the deployments of the site, the newest first. */
export async function list({ tenant, db }: Pick<Ctx, 'tenant' | 'db'>, request: Request): Promise<Deployment[]> {
  const rows = await db.select(listed).from(siteDeployments).orderBy(desc(_id))
  return rows.length ? toDeployments(rows, await listSiteUrls(tenant, request)) : []
}

/**
 * Puts the site of an archive in place of the active one, and returns its deployment.
 * @throws 400 INVALID_INPUT, MALFORMED_BODY, 403 QUOTA_EXCEEDED, 413 SITE_TOO_LARGE, 415, 503, 507
 */
export async function deploy(ctx: Ctx, query: { spa?: string }, request: Request): Promise<Deployment> {
  const { withUnpackedSite } = await import('./archive')
  return withUnpackedSite(ctx, request, async (unpacked) => {
    const isSpa = parseFlag(query, 'spa') ?? false
    const total = unpacked.files.reduce((sum, { size }) => sum + size, 0)
    using quota = await openQuota(ctx, 'storage', total)
    const site = await storeSite(ctx, unpacked, await listUsedFiles(ctx), quota)
    const row = {
      ...{ _id: Bun.randomUUIDv7(), spa: isSpa, files: site.length, bytes: total },
      ...{ by: ctx.actor.user, created: toIsoString(now()), manifest: site },
    }
    await writeInvalidating(ctx, 'sites', async (tx) => {
      await tx.insert(siteDeployments).values({ ...row, activation: await nextActivation(tx) })
      await removeOld(tx)
    })
    quota?.keep()
    return get(ctx, row._id, request)
  })
}

/**
 * Makes a former deployment active, and returns it: the one with this id, or the one that was active last among those
 * older than the active one.
 * @throws 404 DEPLOYMENT_NOT_FOUND, 409 NO_FORMER_DEPLOYMENT
 */
export async function rollback(ctx: Ctx, query: { to?: string }, request: Request): Promise<Deployment> {
  const id = await writeInvalidating(ctx, 'sites', async (tx) => {
    const rows = await tx.select({ _id, activation }).from(siteDeployments).orderBy(desc(activation), desc(_id))
    const target = findTarget(rows, parseOptional(query.to))
    await tx
      .update(siteDeployments)
      .set({ activation: await nextActivation(tx) })
      .where(eq(_id, target))
    return target
  })
  return get(ctx, id, request)
}

function findTarget([active, ...others]: { _id: string }[], wanted: string | undefined): string {
  if (!active) return notFound('site')
  if (wanted) return [active, ...others].find((row) => row._id === wanted)?._id ?? notFound('deployment')
  const former = others.find((row) => row._id < active._id)
  if (former) return former._id
  throw new Problem(409, 'NO_FORMER_DEPLOYMENT', 'There is no deployment before the active one.')
}

/** Removes the site with all its deployments. @throws 404 SITE_NOT_FOUND */
export async function remove(ctx: Ctx) {
  const removed = await writeInvalidating(ctx, 'sites', (tx) => tx.delete(siteDeployments).returning({ _id }))
  return removed.length ? success : notFound('site')
}

/** Names the contents of all deployments. */
export const siteContentNames: ContentNames = {
  table: 'site_deployments',
  column: 'manifest',
  *list(value) {
    for (const { path, sha256, encodings = {} } of JSON.parse(value) as SiteFile[]) {
      yield [sha256, `${path} of the site`]
      for (const [encoding, content] of Object.entries(encodings))
        yield [content.sha256, `${path} (${encoding}) of the site`]
    }
  },
}

const listUsedFiles = async ({ db }: Pick<Tenant, 'db'>): Promise<SiteFile[]> =>
  (await db.select({ manifest }).from(siteDeployments)).flatMap((row) => row.manifest)

async function get(ctx: Ctx, id: string, request: Request) {
  const all = await list(ctx, request)
  return all.find((deployment) => deployment._id === id) ?? notFound('deployment')
}

/** Returns the time in seconds, or a later one where another deployment has that. Former releases counted from 1. */
async function nextActivation(tx: Tx): Promise<number> {
  const row = await tx
    .select({ last: max(activation) })
    .from(siteDeployments)
    .get()
  return Math.max(Math.floor(now() / 1000), (row?.last ?? 0) + 1)
}

/** Removes deployments beyond the newest ones. */
async function removeOld(tx: Tx) {
  const rows = await tx.select({ _id }).from(siteDeployments).orderBy(desc(_id))
  const old = rows.slice(MAX_DEPLOYMENTS).map((row) => row._id)
  if (old.length) await tx.delete(siteDeployments).where(inArray(_id, old))
}

function toDeployments(rows: DeploymentRow[], urls: string[]): Deployment[] {
  const last = Math.max(...rows.map((row) => row.activation))
  const active = rows.find((row) => row.activation === last)!._id
  return rows.map(({ activation: _, ...row }) => {
    const isActive = row._id === active
    return { ...row, active: isActive, urls: isActive ? urls : [] }
  })
}
