import { now } from '../core/clock'
import type { Tx } from '../storage/port'
import { keepOf } from './changes/log'
import { oneOf } from './conditions'
import type { Told } from './dispatch'
import { Held, type Pointer } from './held'
import { type Keys, labelOf } from './keys'
import { DELETE_ROW, type Stored, storedInForce, storedOf } from './rows'
import { docOf, shownOf } from './wire'

const AT_ONCE = 50 // entities read by one statement
const SIZE = 4 << 20 // characters that are written anew in one write

// What was prepared of it for a change of its blueprint has to be prepared anew.
const WRITE = `update entities set shown = ?, altered = null, keys = ?, version = ?, updated = ?,
  form = (select -1 from alterations a where a.blueprint = entities.blueprint and a.state = 'preparing') where seq = ?`

/**
 * Takes values out of relations, by nobody's right but the blueprint's. Where one must not be missing, it holds what it
 * points to, unless that is of the blueprint `forced`: then it stays. Returns what was changed. @throws Held
 */
export async function clear(tx: Tx, pointers: Pointer[], forced?: string): Promise<(Told & { blueprint: string })[]> {
  const cleared: (Told & { blueprint: string })[] = []
  const entities = [...Map.groupBy(pointers, ({ entity }) => entity)]
  let size = 0
  for (let at = 0; at < entities.length; at += AT_ONCE) {
    const some = new Map(entities.slice(at, at + AT_ONCE))
    const { sql, params } = oneOf('seq', [...some.keys()])
    const changes = []
    for (const row of await tx.ask(`select ${storedInForce} from entities where ${sql}`, params)) {
      const stored = storedOf(row)
      size += stored.shown.length
      if (size > SIZE) throw new Held(pointers, true)
      const own = some.get(stored.seq) ?? []
      const after = await clearOf(tx, stored, own, forced)
      if (!after) continue
      const { blueprint } = own[0]!.reference
      const { _id, identifier, user, workspace, version } = stored
      changes.push({ blueprint, before: stored, after })
      cleared.push({ blueprint, _id, identifier, user, workspace, version: version + 1 })
    }
    if (changes.length) await keepOf(tx, changes)
  }
  return cleared
}

async function clearOf(tx: Tx, row: Stored, pointers: Pointer[], forced?: string) {
  const [doc, keys] = [JSON.parse(docOf(row.shown)), JSON.parse(row.keys) as Keys]
  const gone: unknown[][] = []
  for (const [{ field, number, multi, least }, of] of Map.groupBy(pointers, ({ reference }) => reference)) {
    const values = of.map(({ value }) => value)
    const stays = (value: string) => !values.includes(value)
    const left = multi ? (doc[field] as string[]).filter(stays) : []
    if (left.length < least) {
      if (of[0]?.target === forced) continue
      throw new Held(of)
    }
    const label = labelOf({ number })
    if (multi) Object.assign(doc, { [field]: left })
    else delete doc[field]
    if (multi) keys[label] = (keys[label] as string[]).filter(stays)
    else delete keys[label]
    gone.push(...values.map((value) => [number, '', value, row.created, row.seq]))
  }
  if (!gone.length) return
  const [updated, text] = [now(), JSON.stringify(doc)]
  const shown = shownOf({ ...row, updated }, text)
  await tx.each(DELETE_ROW, gone)
  const after = { shown, keys: JSON.stringify(keys) }
  await tx.ask(WRITE, [after.shown, after.keys, row.version + 1, updated, row.seq])
  return after
}
