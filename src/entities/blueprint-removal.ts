import type { PublicCtx } from '../accounts/context'
import type { Model } from '../blueprints/model'
import { BLUEPRINT_CODE } from '../blueprints/number-sequence'
import type { Db, Tx } from '../storage/port'
import { type DeletedEntityRow, deleteEntities, deleteInBatches, takeBatch, toDeletedEntity } from './write/deletion'

/** What is read of entities that are deleted. */
export const DELETE_COLUMNS = ['e.seq', 'e.keys', 'e.created', 'e.identifier']

/** Returns whether a blueprint has entities. */
export const hasEntities = async (db: Db, blueprint: string) =>
  (await db.query(`select 1 from entities where blueprint = ${BLUEPRINT_CODE} limit 1`, [blueprint])).length > 0

/**
 * Removes all entities of a blueprint, a batch at a time. References from other entities do not prevent it. `whenEmpty`
 * runs in a transaction of its own, or with what others have created meanwhile.
 */
export async function removeAll(ctx: PublicCtx, { key, code }: Model, whenEmpty: (tx: Tx) => Promise<void>) {
  const removeBatches = (afterBatch: (tx: Tx) => Promise<void> | void) =>
    deleteInBatches(ctx, async (tx, references, limit) => {
      const slice = `select ${DELETE_COLUMNS.join(', ')} from entities e where e.blueprint = ? limit ?`
      const batch = (await tx.query(slice, [code, limit])) as DeletedEntityRow[]
      const removed = await deleteEntities(tx, takeBatch(batch.map((row) => toDeletedEntity(key, row))), {
        ...{ references, by: ctx, forced: key },
        // The history ends with its blueprint.
        erased: { of: ({ blueprint }) => blueprint === key, extent: 'all' },
      })
      await afterBatch(tx)
      return removed.length
    })
  // Who follows the changes is told of each removal before the blueprint is gone.
  await removeBatches(() => {})
  await removeBatches(async (tx) => {
    if (!(await hasEntities(tx, key))) await whenEmpty(tx)
  })
}
