// `bun earlier-entities.ts <tenant> store|count`: stores a tenant's entities as the first version did, or tells how many are.
import '../../src/app'
import { getModel } from '../../src/blueprints/blueprints'
import { toIndexKeys } from '../../src/entities/store/index-keys'
import { extractDocumentJson, parseHeader, shownInForceSql } from '../../src/entities/store/serializer'
import { databases } from '../../src/tenancy/databases'
import { getTenant, type Tenant } from '../../src/tenancy/tenants'

const ENTITIES_PER_WRITE = 500
const UPDATE_ENTITY = 'update entities set _id = coalesce(_id, identifier), shown = ?, keys = ? where seq = ?'
const INSERT_PROGRESS =
  "insert into entity_compaction (name, done, upto) select 'entities', 0, max(seq) from entities having max(seq) > 0"

/**
 * Stores all entities as the first version did: the system properties before the document, all index keys, and ids
 * also where they are the identifier.
 */
export async function storeAsEarlier(tenant: Tenant) {
  const model = await getModel(tenant, 'things')
  const rows = await tenant.db.query(`select seq, ${shownInForceSql()} from entities`)
  const earlier = (rows as [number, string][]).map(([seq, packed]) => {
    const { created, updated, _id, identifier, user, workspace } = parseHeader(packed)
    const [document, times] = [extractDocumentJson(packed), [created, updated].map((ms) => new Date(ms).toISOString())]
    const system = JSON.stringify({ _id, identifier, created: times[0], updated: times[1], user, workspace })
    const keys = JSON.stringify(toIndexKeys(model, JSON.parse(document)))
    return [`${system.slice(1, -1)},"metadata":${document}`, keys, seq]
  })
  for (let at = 0; at < earlier.length; at += ENTITIES_PER_WRITE)
    await tenant.write((tx) => tx.executeMany(UPDATE_ENTITY, earlier.slice(at, at + ENTITIES_PER_WRITE)))
  await tenant.write((tx) => tx.query(INSERT_PROGRESS))
}

/** Returns how many entities are stored as the first version did. */
export const countEarlier = async ({ db }: Tenant) =>
  Number((await db.query("select count(*) from entities where substr(shown, 1, 1) <> '{'"))[0]![0])

if (import.meta.main) {
  const tenant = await getTenant(process.argv[2]!)
  if (process.argv[3] === 'store') await storeAsEarlier(tenant)
  // A server that was killed keeps its leases for half a minute.
  else await tenant.write((tx) => tx.query('update leases set expires = 0'))
  console.log(await countEarlier(tenant))
  await databases.close()
  process.exit()
}
