import { advance, alterationIn, giveUp, putInForce } from '../../blueprints/inforce'
import type { Coming, Model } from '../../blueprints/model'
import type { Lease } from '../../jobs/holding'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { Doc } from '../document'
import { type Keys, rowsOf } from '../keys'
import { difference, indexed, writeRows } from '../rows'
import { IS_SEARCHED, keepTerms, searchable } from '../search'
import { docOf, shownOf } from '../wire'
import { jointTerms } from '../words'
import { type Altered, altered, freshOnly, type Plan, type Trouble } from './altered'
import { changedAmong, entitiesOn, type Kept, marked } from './places'
import { twice, uniques } from './survey'

const MARKED = 200 // entities at once, of those that somebody has written
const FORMULAS = 20 // of those, where they have to be worked out in a write

type Entity = { kept: Kept; before: Doc; after: Altered }

/** An entity can't be what it has to become. */
class Hopeless extends Error {
  constructor(
    readonly trouble: Trouble,
    readonly identifier: string,
  ) {
    super(trouble.message)
  }
}

/**
 * Prepares some entities for what is to come: beside what is in force they get what they will be shown as, and the texts
 * and rows of the index for fields that are found by new numbers. Nobody asks by those yet. When all are prepared, and
 * none was written since, the change is in force at the end of that same transaction. Answers whether there is more to do.
 */
export async function prepare(tenant: Tenant & Lease, model: Model, coming: Coming, most?: number): Promise<boolean> {
  const { key } = model
  const [row] = (await tenant.db.ask('select created, entity, upto from alterations where blueprint = ?', [
    key,
  ])) as number[][]
  if (!row) return false
  // Their words would be those of the old fields only.
  if (await areWordsMade(tenant.db, key)) await searchable(tenant, model)
  const { entities: some, end } = await entitiesOn(tenant.db, model, { from: [row[0]!, row[1]!], upto: row[2]! }, most)
  const entities = end ? some : await marked(tenant.db, model, MARKED)
  const ahead = new Map<number, Entity>()
  for (const kept of entities) {
    ahead.set(kept.seq, await entityOf(coming, kept))
    if (coming.alteration.recomputes) await new Promise(setImmediate)
  }
  try {
    return await tenant.write(async (tx) => {
      const state = await alterationIn(tx, key, coming.form, 'preparing')
      if (!state) return false
      if (await areWordsMade(tx, key)) return true
      const changed = await changedAmong(tx, model, entities)
      const now: Entity[] = []
      for (const { seq } of entities) {
        if (!changed.has(seq)) now.push(ahead.get(seq)!)
        else if (changed.get(seq)) now.push(await entityOf(coming, changed.get(seq)!, { atOnce: true }))
      }
      await keep(tx, model, coming, now)
      if (end) await advance(tx, state, end, some.length)
      // However fast others write, now they wait.
      const most = coming.alteration.recomputes ? FORMULAS : MARKED
      const left = end ? [] : await marked(tx, model, most + 1)
      if (end || left.length > most) return true
      const last: Entity[] = []
      for (const kept of left) last.push(await entityOf(coming, kept, { atOnce: true }))
      await keep(tx, model, coming, last)
      await putInForce(tx, state)
      return false
    })
  } catch (error) {
    if (!(error instanceof Hopeless)) throw error
    const { trouble, identifier } = error
    const problem = { ...trouble, details: [{ ...trouble, count: 1, examples: [identifier] }] }
    const { field: _, ...refusal } = problem
    await tenant.write(async (tx) => {
      const state = await alterationIn(tx, key, coming.form, 'preparing')
      if (state) await giveUp(tx, state, refusal)
    })
    return false
  }
}

async function entityOf(plan: Plan, kept: Kept, when: { atOnce?: boolean } = {}): Promise<Entity> {
  const before = JSON.parse(docOf(kept.shown)) as Doc
  return { kept, before, after: await altered(plan, kept, before, when) }
}

const areWordsMade = async (db: Pick<Tx, 'ask'>, key: string) =>
  (await db.ask('select 1 from search_progress where blueprint = ? and done < upto', [key])).length > 0

const WRITE = 'update entities set shown = ?, altered = ?, form = ?, keys = ? where seq = ?'

async function keep(tx: Tx, model: Model, coming: Coming, entities: Entity[]) {
  await refuseHopeless(tx, coming, entities)
  const [gone, come, writes]: unknown[][][] = [[], [], []]
  const rewords = coming.next.fields.some(({ key, kind }) => kind.searched && coming.alteration.fresh.has(key))
  const terms: [number, string][] = []
  for (const { kept, before, after } of entities) {
    const all = JSON.parse(kept.keys) as Keys
    // From an earlier attempt, before somebody wrote it.
    const stale = freshOnly(coming, all)
    const [left, added] = difference(rowsOf(coming.next, stale), after.index)
    gone!.push(...indexed(kept, left))
    come!.push(...indexed(kept, added))
    if (rewords) terms.push([kept.seq, jointTerms([model, before], [coming.next, after.doc])])
    const differs = !Bun.deepEquals(after.doc, before)
    if (!differs && kept.form === null && Bun.deepEquals(stale, after.keys)) continue
    const keys = { ...without(all, stale), ...after.keys }
    const shown = differs ? shownOf(kept, JSON.stringify(after.doc)) : null
    writes!.push([kept.shown, shown, differs ? coming.form : null, JSON.stringify(keys), kept.seq])
  }
  await writeRows(tx, gone!, come!)
  await tx.each(WRITE, writes!)
  if (terms.length && (await tx.ask(`select ${IS_SEARCHED}`, [model.key]))[0]![0]) keepTerms(tx, terms)
}

const without = (keys: Keys, some: Keys) =>
  Object.fromEntries(Object.entries(keys).filter(([label]) => !Object.hasOwn(some, label)))

/** Of those that are prepared, no two ever have the same value of a unique field. @throws Hopeless */
async function refuseHopeless(tx: Tx, plan: Plan, entities: Entity[]) {
  for (const { kept, after } of entities) if (after.troubles[0]) throw new Hopeless(after.troubles[0], kept.identifier)
  const taken = 'select entity from entity_index where field = ? and path = ? and value = ? and entity <> ? limit 1'
  for (const { key, number, label } of uniques(plan)) {
    const known = new Set<unknown>()
    for (const { kept, after } of entities) {
      const value = after.keys[label]
      if (value === undefined) continue
      if (known.has(value) || (await tx.ask(taken, [number, '', value, kept.seq])).length)
        throw new Hopeless(twice(key), kept.identifier)
      known.add(value)
    }
  }
}
