import { asc, gt, sql } from 'drizzle-orm'
import { toChunks } from '../core/chunks'
import type { Tenant } from '../tenancy/tenants'
import { contentStore } from './stores/index'
import { files } from './tables'

const CONTENTS_PER_PAGE = 1_000
const PARALLEL_LOOKUPS = 16

/** Returns the names of files whose content the store lacks, one for each content. @throws 503 FILE_STORE_UNAVAILABLE */
export async function findMissingContents({ tenant, db }: Pick<Tenant, 'tenant' | 'db'>): Promise<string[]> {
  const missing: string[] = []
  const name = sql<string>`min(${files.name})`
  for (let after = ''; ; ) {
    const contents = db.select({ sha256: files.sha256, name }).from(files).where(gt(files.sha256, after))
    const page = await contents.groupBy(files.sha256).orderBy(asc(files.sha256)).limit(CONTENTS_PER_PAGE)
    for (const chunk of toChunks(page, PARALLEL_LOOKUPS)) {
      const found = await Promise.all(chunk.map(({ sha256 }) => contentStore().has(tenant, sha256)))
      missing.push(...chunk.flatMap(({ name }, number) => (found[number] ? [] : [name])))
    }
    if (page.length < CONTENTS_PER_PAGE) return missing
    after = page.at(-1)!.sha256
  }
}
