import { getModel } from '../blueprints/blueprints'
import { isAltering, type Model } from '../blueprints/model'
import type { Lease } from '../jobs/with-lease'
import type { Db, Tx } from '../storage/port'
import { invalidate } from '../tenancy/cache'
import type { Tenant } from '../tenancy/tenants'
import type { Doc } from './store/doc'
import { toIndexKeys } from './store/index-keys'
import { extractDocumentJson } from './store/serializer'
import { oneOf, takeWithinSize } from './store/sql-fragments'
import { toStoredKeys } from './store/stored-keys'
import { requireFreshBlueprint, StaleBlueprint } from './write/constraints'

const UPDATE_ENTITY = 'update entities set _id = nullif(_id, identifier), shown = ?, keys = ? where seq = ?'
const ENTITIES_PER_WRITE = 300 // entities read in one write
const MAX_BYTES_PER_WRITE = 1 << 20 // bytes of entities read in one write, unless a single one is larger
const WRITE_PAUSE_MS = 20 // between writes, so that others get their turn

/**
 * Stores the entities of earlier versions anew, without their system properties, the texts among their index keys, and an
 * `_id` that is the identifier, slice by slice. The next housekeeping goes on after an interruption, and after an
 * alteration of one of the blueprints.
 */
export async function compactEntities(tenant: Tenant & Lease) {
  for (;;) {
    tenant.signal.throwIfAborted()
    const slice = await readNextSlice(tenant.db)
    if (!slice) return
    const models = await readModels(tenant, new Set(slice.entities.map(({ blueprint }) => blueprint)))
    if (models.values().some(isAltering)) return
    try {
      await tenant.write((tx) => compactSlice(tx, slice, models))
    } catch (error) {
      if (!(error instanceof StaleBlueprint)) throw error
      invalidate(tenant, 'blueprints')
    }
    await Bun.sleep(WRITE_PAUSE_MS)
  }
}

/** Returns the models of blueprints by their codes. */
async function readModels(tenant: Tenant, codes: Set<string>): Promise<Map<string, Model>> {
  const models = new Map<string, Model>()
  for (const [code, key] of (await tenant.db.query('select code, key from blueprints')) as [string, string][])
    if (codes.has(code)) models.set(code, await getModel(tenant, key))
  return models
}

/** The entities after the last compacted one, and the number of the last of them; without a number at the end. */
type Slice = { entities: { seq: number; blueprint: string }[]; end?: number }

async function readNextSlice(db: Db): Promise<Slice | undefined> {
  const [state] = (await db.query("select done, upto from entity_compaction where name = 'entities'")) as number[][]
  if (!state) return
  const next = `select seq, blueprint, octet_length(shown), substr(shown, 1, 1) from entities
    where seq > ? and seq <= ? order by seq limit ?`
  const rows = (await db.query(next, [...state, ENTITIES_PER_WRITE])) as [number, string, number, string][]
  const read = takeWithinSize(rows, MAX_BYTES_PER_WRITE, ([, , size]) => size)
  const earlier = read.filter(([, , , first]) => first !== '{')
  return { entities: earlier.map(([seq, blueprint]) => ({ seq: Number(seq), blueprint })), end: read.at(-1)?.[0] }
}

async function compactSlice(tx: Tx, { entities, end }: Slice, models: Map<string, Model>) {
  if (end === undefined) return tx.query("delete from entity_compaction where name = 'entities'")
  for (const model of models.values()) await requireFreshBlueprint(tx, model)
  if (entities.length) {
    const { sql, params } = oneOf(
      'seq',
      entities.map(({ seq }) => seq),
    )
    const rows = await tx.query(`select seq, blueprint, shown from entities where ${sql}`, params)
    const compacted = (rows as [number, string, string][]).flatMap(([seq, blueprint, shown]) => {
      const model = models.get(blueprint)
      const text = extractDocumentJson(shown)
      const doc = JSON.parse(text) as Doc
      return model ? [[text, toStoredKeys(model, doc, toIndexKeys(model, doc)), seq]] : []
    })
    await tx.executeMany(UPDATE_ENTITY, compacted)
  }
  await tx.query("update entity_compaction set done = ? where name = 'entities'", [end])
}
