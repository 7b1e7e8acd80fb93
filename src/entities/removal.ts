import type { OpenCtx } from '../accounts/guard'
import { forgetReferences, NewReferences, type References, referencesOf, refuseOld } from '../blueprints/references'
import { Busy } from '../storage/errors'
import type { Manner, Tx } from '../storage/port'
import { forget } from '../tenancy/memory'
import type { Tenant } from '../tenancy/tenants'
import { clear } from './clearing'
import { inPortions, oneOf } from './conditions'
import { type Author, dispatchCleared, dispatchRemovals } from './dispatch'
import { Held, type Pointer, told } from './held'
import { rowsOf } from './keys'
import { Recomputed, Unready } from './recomputed'
import { Outdated } from './refusals'
import { erase } from './rows'

/** An entity that is to be removed. */
export type Leaving = { seq: number; keys: string; created: number; blueprint: string; identifier: string }

/** What refers to what, and what formulas make of those that refer to what goes. */
export type Ties = References & { recomputed: Recomputed }

export type Removal = {
  references: Ties
  /** Who removes them. */
  by: Author
  /** The entities of this blueprint go whoever refers to them. */
  forced?: string
  /** Those of these entities that are to be removed in any case, so that they need not go before those they refer to. */
  also?: (entities: number[]) => Promise<Leaving[]>
}

// All of it happens in one transaction, so that no crash leaves half of it, and nobody else is kept waiting for long.
const MOST = 1_000 // entities that go or change along
const ROWS = 10_000 // of the index, of those
const DEEP = 100 // steps from one entity to the next
const SLICE = 200 // entities removed in one write of many, so that others get their turn
const ASKED = 50 // times that formulas are worked out for one write

/** A write that removes entities. @throws 409 ENTITY_IN_USE, TOO_MANY_REFERENCES */
export const removing = <T>(ctx: OpenCtx, work: (tx: Tx, references: Ties) => Promise<T>): Promise<T> =>
  withReferences(ctx, work).catch(async (error) => {
    throw error instanceof Held ? await told(ctx, error) : error
  })

/**
 * Removes entities by as many writes as it takes, of which each is whole in itself. `remove` gets the number of entities
 * to remove at most, and answers how many it has; with none it is over. Returns how many there were.
 */
export async function removingMany(
  ctx: OpenCtx,
  remove: (tx: Tx, references: Ties, most: number) => Promise<number>,
): Promise<number> {
  let count = 0
  for (let most = SLICE; ; ) {
    try {
      // They may be found by their words, which are only complete when a transaction begins.
      const removed = await withReferences(ctx, (tx, references) => remove(tx, references, most), { alone: true })
      if (!removed) return count
      count += removed
    } catch (error) {
      if (!(error instanceof Held)) throw error
      if (!error.tooMany || most === 1) throw await told(ctx, error, count)
      most = Math.ceil(most / 4)
    }
  }
}

/**
 * A write by what refers to what; again when a blueprint has been changed since that was read, or formulas had to be worked
 * out for it. @throws Held
 */
export async function withReferences<T>(
  tenant: Tenant,
  work: (tx: Tx, references: Ties) => Promise<T>,
  manner?: Manner,
): Promise<T> {
  const recomputed = new Recomputed(tenant)
  for (let [tries, asked] = [0, 0]; ; ) {
    const references = await referencesOf(tenant.db)
    await recomputed.workOut()
    try {
      return await tenant.write(async (tx) => {
        await refuseOld(tx, references)
        recomputed.begin()
        const done = await work(tx, { ...references, recomputed })
        recomputed.end()
        return done
      }, manner)
    } catch (error) {
      // What is refused may be so only because something was missing.
      const unready = !recomputed.isReady && (error instanceof Unready || !(error instanceof Busy))
      if (unready && ++asked < ASKED) continue
      if (!(error instanceof NewReferences || error instanceof Outdated) || ++tries > 3) throw error
      forgetReferences(tenant.db)
      forget(tenant, 'blueprints')
    }
  }
}

/**
 * Removes entities, and does to those that refer to them what their relations say, whosever they are. Who goes along
 * holds nobody, so circles are no matter. Returns all that were removed. @throws Held
 */
export async function remove(tx: Tx, first: Leaving[], { references, by, forced, also }: Removal): Promise<Leaving[]> {
  const gone = new Map(first.map((row) => [row.seq, row]))
  const pointers: Pointer[] = []
  const stays = ({ entity }: Pointer) => !gone.has(entity)
  let [rows, steps] = [0, 0]

  for (let wave = first; wave.length; steps++) {
    const found = await pointersTo(tx, references, wave, forced)
    pointers.push(...found.filter(({ reference }) => reference.onDelete !== 'cascade'))
    const falling = found.filter((pointer) => pointer.reference.onDelete === 'cascade' && stays(pointer))
    wave = await leaving(tx, [...new Set(falling.map(({ entity }) => entity))])
    if (!wave.length) wave = await held(also)
    for (const row of wave) {
      gone.set(row.seq, row)
      rows += rowsOf(undefined, JSON.parse(row.keys)).length
    }
    if (gone.size > first.length + MOST || rows > ROWS || steps > DEEP) throw new Held([...pointers, ...falling], true)
  }
  const cleared = pointers.filter(({ reference }) => reference.onDelete === 'nullify').filter(stays)
  if (new Set(cleared.map(({ entity }) => entity)).size > MOST) throw new Held(cleared, true)
  await dispatchCleared(tx, by, references, await clear(tx, cleared, references, forced))
  await dispatchRemovals(tx, by, references, [...gone.values()])
  await erase(tx, [...gone.values()])
  return [...gone.values()]

  /** Those who hold others, or would by what they must not be without, but are to be removed as well. */
  async function held(also: Removal['also']) {
    const staying = pointers.filter(stays)
    const holding = staying.filter(({ reference }) => reference.onDelete === 'restrict')
    const own = staying.filter(
      ({ reference: { blueprint, onDelete, least } }) =>
        blueprint === first[0]?.blueprint && (onDelete === 'restrict' || least > 0),
    )
    const known = (own.length && (await also?.([...new Set(own.map(({ entity }) => entity))]))) || []
    if (holding.length && !known.length) throw new Held(holding)
    return known
  }
}

/** Who refers to these entities. @throws Held when those are too many */
async function pointersTo(tx: Tx, { to }: References, entities: Leaving[], forced?: string): Promise<Pointer[]> {
  const pointers: Pointer[] = []
  for (const [blueprint, some] of Map.groupBy(entities, (one) => one.blueprint)) {
    for (const reference of to.get(blueprint) ?? []) {
      if (reference.onDelete === 'restrict' && blueprint === forced) continue
      const { sql, params } = oneOf(
        'i.value',
        some.map(({ identifier }) => identifier),
      )
      const found = await tx.ask(
        `select i.entity, i.value from entity_index i where i.field = ? and i.path = '' and ${sql} limit ?`,
        [reference.number, ...params, MOST + some.length],
      )
      pointers.push(...found.map(([entity, value]) => ({ reference, target: blueprint, entity, value }) as Pointer))
      if (found.length < MOST + some.length) continue
      throw new Held(pointers, some.length > 1 || reference.onDelete !== 'restrict')
    }
  }
  return pointers
}

/** These entities, to be removed. */
async function leaving(tx: Tx, entities: number[]): Promise<Leaving[]> {
  const found: Leaving[] = []
  for (const some of inPortions(entities)) {
    const { sql, params } = oneOf('seq', some)
    const rows = await tx.ask(`select seq, keys, created, blueprint, identifier from entities where ${sql}`, params)
    found.push(...(rows as LeavingRow[]).map(leavingOf))
  }
  return found
}

export type LeavingRow = [seq: number, keys: string, created: number, blueprint: string, identifier: string]
export const leavingOf = ([seq, keys, created, blueprint, identifier]: LeavingRow): Leaving => ({
  ...{ seq, keys, created, blueprint, identifier },
})
