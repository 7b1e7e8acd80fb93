import type { Tx } from '../storage/port'

/** SQL for the code of a blueprint; its parameter is the blueprint's key. */
export const BLUEPRINT_CODE = '(select b.code from blueprints b where b.key = ?)'

/** Returns the next number of a sequence of the tenant. It has never been returned before, also if it is no longer used. */
export const takeNumber = async (tx: Tx, sequence: 'histories' | 'blueprint codes') =>
  Number(
    (
      await tx.query(
        `insert into versions (topic, version) values (?, 1)
         on conflict ("topic") do update set version = versions.version + 1 returning version`,
        [sequence],
      )
    )[0]![0],
  )
