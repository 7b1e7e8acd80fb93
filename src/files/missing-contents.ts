import { asc, gt, sql } from 'drizzle-orm'
import { listContentNames } from '../backups/contents/content-names'
import { toChunks } from '../core/chunks'
import type { Tenant } from '../tenancy/tenants'
import { contentStore } from './stores/index'
import { files } from './tables'

const CONTENTS_PER_PAGE = 1_000
const PARALLEL_LOOKUPS = 16

/**
 * Returns the names of files, those of sites too, whose content the store lacks or has only a part of, one for each content.
 * @throws 503 FILE_STORE_UNAVAILABLE
 */
export async function findMissingContents({ tenant, db }: Pick<Tenant, 'tenant' | 'db'>): Promise<string[]> {
  const missing: string[] = []
  const check = async (contents: { sha256: string; name: string; size?: number }[]) => {
    for (const chunk of toChunks(contents, PARALLEL_LOOKUPS)) {
      const found = await Promise.all(chunk.map(({ sha256, size }) => contentStore().has(tenant, sha256, size)))
      missing.push(...chunk.flatMap(({ name }, number) => (found[number] ? [] : [name])))
    }
  }
  const others = await listContentNames(db.query)
  const name = sql<string>`min(${files.name})`
  const size = sql<number>`min(${files.size})`.mapWith(Number)
  for (let after = ''; ; ) {
    const contents = db.select({ sha256: files.sha256, name, size }).from(files).where(gt(files.sha256, after))
    const page = await contents.groupBy(files.sha256).orderBy(asc(files.sha256)).limit(CONTENTS_PER_PAGE)
    await check(page)
    for (const { sha256 } of page) others.delete(sha256)
    if (page.length < CONTENTS_PER_PAGE) break
    after = page.at(-1)!.sha256
  }
  await check([...others].map(([sha256, name]) => ({ sha256, name })))
  return missing
}
