import type { Model } from '../blueprints/model'
import { type Caller, mayRead, type Reach, reaches } from '../blueprints/rules'
import { config } from '../config'
import { invalid, Problem } from '../core/problem'
import { Busy, Conflict } from '../storage/errors'
import type { Tx } from '../storage/port'
import { IS_LOGGED } from './changes/log'
import type { Known } from './computed'
import type { Doc } from './document'
import { assertMayCompare, hiddenConflict } from './hidden-conflicts'
import type { Keys } from './keys'
import type { Stored } from './rows'
import { IS_SEARCHED } from './search'

/** A blueprint was changed while its entity was being checked against it. */
export class Outdated extends Busy {}

/** An entity was changed while another change of it was being worked out. */
export class Overtaken extends Outdated {}

/** Which rows of other blueprints the writer may see, by the key of the blueprint. */
export type Sight = Map<string, Reach | undefined>

/** For what was worked out from an entity before the write. @throws Overtaken */
export async function refuseOvertaken(tx: Tx, { seq, _id, version }: Stored) {
  const [row] = await tx.ask('select version from entities where seq = ? and _id = ?', [seq, _id])
  if (row?.[0] !== version) throw new Overtaken()
}

/** Whether the words of the entities are kept, and their changes. */
export type Observed = { searched: boolean; logged: boolean }

export async function refuseOutdated(tx: Tx, { key, _id, version }: Model): Promise<Observed> {
  const select = `select version, ${IS_SEARCHED}, ${IS_LOGGED} from blueprints where key = ? and _id = ?`
  const [row] = await tx.ask(select, [key, key, key, _id])
  if (row?.[0] !== version) throw new Outdated()
  return { searched: !!row[1], logged: !!row[2] }
}

/** Many small changes must not make what no single one may. */
export function refuseLarge({ length }: string) {
  if (length > config.ATOLL_BODY_LIMIT)
    invalid({ path: '', message: `The entity would be larger than ${config.ATOLL_BODY_LIMIT} characters.` })
}

/**
 * In the writing transaction, where nobody can come in between. @throws 409 UNIQUE_VIOLATION, or CONFLICT where the caller may
 * not read the field; 429
 */
export async function refuseDuplicates(tx: Tx, model: Model, keys: Keys, by: Caller | undefined, old: Keys = {}) {
  for (const field of model.fields) {
    const label = `f${field.number}`
    const key = keys[label]
    if (!field.unique || key === undefined || key === old[label]) continue
    const isHidden = !mayRead(field, by)
    if (isHidden) assertMayCompare(model, by)
    const where = 'where field = ? and path = ? and value = ? limit 1'
    const rows = await tx.ask(`select 1 from entity_index ${where}`, [field.number, '', key])
    if (!rows.length) continue
    if (isHidden) throw hiddenConflict(model, by)
    throw new Problem(409, 'UNIQUE_VIOLATION', `Another entity has this ${field.key} already.`, {
      details: [{ path: `/${field.key}`, message: `${field.key} must be unique.` }],
    })
  }
}

/** An entity answers to its `_id`, too, so no other one may be called by it. */
export async function refuseUsurper(tx: Tx, { key }: Model, { _id, identifier }: Known) {
  if (identifier === _id) return
  const rows = await tx.ask('select 1 from entities where _id = ? and blueprint = ?', [identifier, key])
  if (rows.length) throw new Conflict()
}

/** Relations lead to what the writer may see. */
export async function refuseDangling(tx: Tx, model: Model, doc: Doc, stored: Doc, sight: Sight) {
  for (const { key, target } of model.fields) {
    if (!target || doc[key] === undefined || Bun.deepEquals(doc[key], stored[key])) continue
    const reach = sight.get(target)
    for (const identifier of [doc[key]].flat() as string[]) {
      const [row] = await tx.ask('select "user", workspace from entities where blueprint = ? and identifier = ?', [
        target,
        identifier,
      ])
      const [user, workspace] = (row ?? []) as [string | null, string | null]
      if (!row || !reach || !reaches(reach, { user, workspace }))
        invalid({ path: `/${key}`, message: `There is no entity "${identifier}" of "${target}".` })
    }
  }
}
