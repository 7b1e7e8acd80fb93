import type { Db, Tx } from '../storage/port'

/** SQL for the code of a blueprint; its parameter is the blueprint's key. */
export const BLUEPRINT_CODE = '(select b.code from blueprints b where b.key = ?)'

/** Returns the next number of a sequence of the tenant. It has never been returned before, also if it is no longer used. */
export const takeNumber = async (tx: Tx, sequence: 'histories' | 'blueprint codes' | 'compound indexes') =>
  Number(
    (
      await tx.query(
        `insert into versions (topic, version) values (?, 1)
         on conflict ("topic") do update set version = versions.version + 1 returning version`,
        [sequence],
      )
    )[0]![0],
  )

/** Tells whether a blueprint has entities. The order makes PostgreSQL look it up, instead of reading other blueprints. */
export const hasEntities = async (db: Pick<Db, 'query'>, code: string) =>
  (await db.query('select 1 from entities where blueprint = ? order by identifier limit 1', [code])).length > 0

const RECENT_ENTITIES = 1_000

/**
 * Returns the last number of a blueprint's entities; 0 without entities. `max(seq)` alone would be looked for among all
 * entities of the tenant that came later, which takes as long as they are many.
 */
export async function readLastEntityNumber(db: Pick<Db, 'query'>, code: string): Promise<number> {
  if (!(await hasEntities(db, code))) return 0
  const recent = await db.query('select seq, blueprint from entities order by seq desc limit ?', [RECENT_ENTITIES])
  const own = recent.find(([, blueprint]) => blueprint === code)
  if (own) return Number(own[0])
  const [[last = 0] = []] = await db.query('select max(seq + 0) from entities where blueprint = ?', [code])
  return Number(last)
}

/** Returns the code of a blueprint; empty, as that of none, where there is no such blueprint. */
export async function readBlueprintCode(db: Pick<Db, 'query'>, key: string): Promise<string> {
  const [[code = ''] = []] = await db.query('select code from blueprints where key = ?', [key])
  return code as string
}
