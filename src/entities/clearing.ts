import type { Model } from '../blueprints/model'
import { now } from '../core/clock'
import { Problem } from '../core/problem'
import type { Tx } from '../storage/port'
import { keepOf } from './changes/log'
import { oneOf } from './conditions'
import type { Told } from './dispatch'
import type { Doc } from './document'
import { Held, type Pointer } from './held'
import { type Keys, keysOf, labelOf } from './keys'
import type { Made } from './recomputed'
import { type Observed, refuseDuplicates, refuseOutdated } from './refusals'
import type { Ties } from './removal'
import { DELETE_ROW, replace, type Stored, storedInForce, storedOf } from './rows'
import { docOf, shownOf } from './wire'

const AT_ONCE = 50 // entities read by one statement
const SIZE = 4 << 20 // characters that are written anew in one write

// What was prepared of it for a change of its blueprint has to be prepared anew.
const WRITE = `update entities set shown = ?, altered = null, keys = ?, version = ?, updated = ?,
  form = (select -1 from alterations a where a.blueprint = entities.blueprint and a.state = 'preparing') where seq = ?`

type Cleared = Told & { blueprint: string }

/**
 * Takes values out of relations, by nobody's right but the blueprint's, and works out what formulas make of the rest. Where
 * an entity can't be without one, it holds what that points to, unless that is of the blueprint `forced`: then it stays.
 * Returns what was changed. @throws Held
 */
export async function clear(tx: Tx, pointers: Pointer[], ties: Ties, forced?: string): Promise<Cleared[]> {
  const cleared: Cleared[] = []
  const entities = [...Map.groupBy(pointers, ({ entity }) => entity)]
  const observed = new Map<string, Observed>()
  let size = 0
  for (let at = 0; at < entities.length; at += AT_ONCE) {
    const some = new Map(entities.slice(at, at + AT_ONCE))
    const { sql, params } = oneOf('seq', [...some.keys()])
    const changes = []
    const anew: Anew[] = []
    for (const row of await tx.ask(`select ${storedInForce} from entities where ${sql}`, params)) {
      const stored = storedOf(row)
      size += stored.shown.length
      if (size > SIZE) throw new Held(pointers, true)
      const own = some.get(stored.seq) ?? []
      const left = without(stored, own, forced)
      if (!left) continue
      const { blueprint } = own[0]!.reference
      const computes = ties.computing.has(blueprint)
      const made = computes ? ties.recomputed.of(blueprint, stored, left.doc) : undefined
      const after = made && (await computedRow(tx, made, stored))
      if (made && !after && !own.some(({ target }) => target === forced)) throw new Held(own)
      if (made && after) anew.push({ model: made.model, before: stored, after })
      else if (made || !computes) changes.push({ blueprint, before: stored, after: await keepLeft(tx, stored, left) })
      // The next one must not have what this one has by now.
      if (made?.model.fields.some(({ unique }) => unique)) await keepAnew(tx, anew.splice(0), observed)
      const { _id, identifier, user, workspace, version } = stored
      cleared.push({ blueprint, _id, identifier, user, workspace, version: version + 1 })
    }
    await keepAnew(tx, anew, observed)
    if (changes.length) await keepOf(tx, changes)
  }
  return cleared
}

/** What is left of an entity, and the rows of the index that are gone. */
type Left = { doc: Doc; keys: Keys; gone: unknown[][] }

function without(row: Stored, pointers: Pointer[], forced?: string): Left | undefined {
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
  return gone.length ? { doc, keys, gone } : undefined
}

async function keepLeft(tx: Tx, row: Stored, { doc, keys, gone }: Left) {
  const updated = now()
  const after = { shown: shownOf({ ...row, updated }, JSON.stringify(doc)), keys: JSON.stringify(keys) }
  await tx.each(DELETE_ROW, gone)
  await tx.ask(WRITE, [after.shown, after.keys, row.version + 1, updated, row.seq])
  return after
}

/** How an entity is kept by what formulas have made of it; nothing where that doesn't fit, or another has it already. */
async function computedRow(tx: Tx, { model, whole }: Made, before: Stored): Promise<Stored | undefined> {
  if (!whole) return
  const keys = keysOf(model, whole)
  if (await refuseDuplicates(tx, model, keys, undefined, JSON.parse(before.keys)).catch(unlessTaken)) return
  const [updated, version] = [now(), before.version + 1]
  const shown = shownOf({ ...before, updated }, JSON.stringify(whole))
  return { ...before, shown, keys: JSON.stringify(keys), updated, version }
}

function unlessTaken(error: unknown): true {
  if (error instanceof Problem) return true
  throw error
}

type Anew = { model: Model; before: Stored; after: Stored }

async function keepAnew(tx: Tx, all: Anew[], observed: Map<string, Observed>) {
  for (const { model } of all) if (!observed.has(model.key)) observed.set(model.key, await refuseOutdated(tx, model))
  await Promise.all(all.map(({ model, before, after }) => replace(tx, model, before, after, observed.get(model.key)!)))
}
