import { advance, alterationIn, finish } from '../../blueprints/inforce'
import type { Model } from '../../blueprints/model'
import type { Lease } from '../../jobs/holding'
import type { Tenant } from '../../tenancy/tenants'
import type { Doc } from '../document'
import { type Keys, keysOf, rowsOf } from '../keys'
import { difference, indexed, writeRows } from '../rows'
import { IS_SEARCHED, keepTerms } from '../search'
import { docOf } from '../wire'
import { termsOf } from '../words'
import { entitiesOn, type Way } from './places'

const WRITE = 'update entities set shown = ?, altered = null, form = null, keys = ? where seq = ?'

/**
 * Leaves of some entities only what is in force; what was before it, or was prepared and given up, goes. Answers whether there is more to do.
 */
export async function clean(tenant: Tenant & Lease, model: Model, form: number, most?: number): Promise<boolean> {
  return tenant.write(async (tx) => {
    const state = await alterationIn(tx, model.key, form, 'cleaning')
    if (!state) return false
    const way: Way = { from: [state.created, state.entity], upto: state.upto }
    const { entities, end } = await entitiesOn(tx, model, way, most)
    if (!end) {
      await finish(tx, state)
      return false
    }
    const [gone, come, writes]: unknown[][][] = [[], [], []]
    const terms: [number, string][] = []
    for (const entity of entities) {
      const doc = JSON.parse(docOf(entity.shown)) as Doc
      const [old, keys] = [JSON.parse(entity.keys) as Keys, keysOf(model, doc)]
      if (entity.form === null && Bun.deepEquals(old, keys)) continue
      const [left, added] = difference(rowsOf(undefined, old), rowsOf(model, keys))
      gone!.push(...indexed(entity, left))
      come!.push(...indexed(entity, added))
      writes!.push([entity.shown, JSON.stringify(keys), entity.seq])
      terms.push([entity.seq, termsOf(model, doc)])
    }
    await writeRows(tx, gone!, come!)
    await tx.each(WRITE, writes!)
    if (terms.length && (await tx.ask(`select ${IS_SEARCHED}`, [model.key]))[0]![0]) keepTerms(tx, terms)
    await advance(tx, state, end, entities.length)
    return true
  })
}
