import type { Model } from '../blueprints/model'
import type { Reach } from '../blueprints/rules'
import type { Db } from '../storage/port'
import { and, type FieldTarget, holds, type Indexed, type Part, part, valueIs, within } from './conditions'
import { type Condition, nameOf, type Target, type Test } from './query'
import { everything } from './scans'
import { bounds, few } from './sizes'

/** A set of entities, by their numbers. */
export class Members {
  #marks = new Uint8Array(1 << 12)
  size = 0

  static of(entities: Iterable<number>) {
    const members = new Members()
    for (const one of entities) members.add(one)
    return members
  }

  has = (entity: number) => this.#marks[entity] === 1

  add(entity: number) {
    if (entity >= this.#marks.length) {
      const grown = new Uint8Array(2 ** Math.ceil(Math.log2(entity + 1)))
      grown.set(this.#marks)
      this.#marks = grown
    }
    if (this.#marks[entity]) return
    this.#marks[entity] = 1
    this.size++
  }

  delete(entity: number) {
    if (!this.has(entity)) return
    this.#marks[entity] = 0
    this.size--
  }

  copy() {
    const copy = new Members()
    copy.#marks = this.#marks.slice()
    copy.size = this.size
    return copy
  }

  /** In the order of their numbers. */
  *[Symbol.iterator]() {
    for (let at = this.#marks.indexOf(1); at >= 0; at = this.#marks.indexOf(1, at + 1)) yield at
  }
}

/** Rows that an index has in the order of `by`, which tells any two of them apart; and which entity each is of. */
export type Source = { from: string; where: Part; entity: string; by: string[] }

export const BY_VALUE = ['i.value', 'i.created', 'i.entity']
const BY_TIME = ['e.created', 'e.seq']

const ofField = ({ field, path }: FieldTarget, where: Part[], by: string[]): Source => ({
  from: 'entity_index i',
  where: and([part('i.field = ? and i.path = ?', field.number, path), ...where]),
  entity: 'i.entity',
  by,
})

const ofColumn = (model: Model, where: Part[], by: string[]): Source => {
  const all = everything(model)
  return { from: all.from, where: and([all.where, ...where]), entity: 'e.seq', by }
}

/** How the entities' own indexes begin: each has the blueprint first. */
const orders: Partial<Record<string, string[]>> = {
  'e.created': BY_TIME,
  'e.identifier': ['e.identifier'],
  ...Object.fromEntries(['e.updated', 'e."user"', 'e.workspace'].map((column) => [column, [column, ...BY_TIME]])),
}

/** Where the entities that meet a test are; nothing where no index tells. */
function ofTarget(model: Model, target: Target, test: Part[]): Source | undefined {
  if (target.at === 'field') return target.indexed ? ofField(target, test, BY_VALUE) : undefined
  const by = orders[target.column]
  return by && ofColumn(model, test, by)
}

/**
 * Where the entities that have a value of it are in its order, and then in that of time, as far as that value meets the
 * conditions about it; nothing where no index has that.
 */
export function inOrderOf(model: Model, target: Target, conditions: Condition[] = [], more: Part[] = []) {
  const at = target.at === 'field' ? 'i.value' : target.column
  const own = conditions.filter((one) => isOwn(target, one)).map((one) => valueIs(at, one as Test))
  if (target.at === 'field') return target.single ? ofTarget(model, target, own) : undefined
  return ofTarget(model, target, [part(`${at} is not null`), ...own, ...more])
}

/** Whether a condition is about the value there. */
export const isOwn = (target: Target, condition: Condition) =>
  nameOf(condition.target) === nameOf(target) && condition.is !== 'present' && condition.is !== 'absent'

/** Where the entities of one value are in the order of time. */
export const inTimeOf = ({ target, ...test }: Indexed): Source =>
  ofField(target, [valueIs('i.value', test)], ['i.created', 'i.entity'])

/** Where all are that meet a condition, or all that don't. */
function sourcesOf(model: Model, condition: Condition): { sources: Source[]; not: boolean } {
  const { target, ...test } = condition
  const at = target.at === 'column' ? target.column : 'i.value'
  const whole = ofTarget(model, target, [])
  const whether = test.is === 'present' || test.is === 'absent'
  // Of an empty list, no index has a row.
  const hidden = whether && target.at === 'field' && !target.single && !target.path
  if (!whole || hidden) return { sources: [ofColumn(model, [holds(condition)], BY_TIME)], not: false }
  if (whether) return { sources: [ofTarget(model, target, [part(`${at} is not null`)])!], not: test.is === 'absent' }
  if (test.is === 'between') return { sources: [ofTarget(model, target, [valueIs(at, test)])!], not: false }
  const sources = [...new Set(test.values)].map((value) => {
    const same = ofTarget(model, target, [part(`${at} = ?`, value)])!
    return { ...same, by: same.by.length > 1 ? same.by.slice(1) : same.by }
  })
  return { sources, not: test.is === 'not in' }
}

/** Where all are within reach; or all that aren't, if those are few. */
async function reached(db: Db, model: Model, reach: Extract<Reach, { all: false }>) {
  const { user, workspace } = reach
  if (user !== undefined && workspace === undefined) {
    const others = ['< ?', '> ?', 'is null'].map((side) =>
      ofColumn(model, [part(`e."user" ${side}`, ...(side === 'is null' ? [] : [user]))], ['e."user"', ...BY_TIME]),
    )
    if ((await sizeOf(db, others, bounds.few)) < bounds.few) return { sources: others, not: true }
  }
  return { sources: sourcesWithin(model, reach), not: false }
}

async function sizeOf(db: Db, sources: Source[], most: number) {
  let size = 0
  for (const { from, where } of sources) size += size < most ? await few(db, from, where, most) : 0
  return size
}

/** Within reach are those of each of these. */
const sourcesWithin = (model: Model, { user, workspace }: Extract<Reach, { all: false }>): Source[] =>
  [{ user }, { workspace }]
    .filter(({ user, workspace }) => (user ?? workspace) !== undefined)
    .map((one) => ofColumn(model, within({ all: false, ...one }), BY_TIME))

/** The entities of a source in its order, or the other way round, from a first slice of so many rows on: they get larger. */
export async function* slicesOf(db: Db, source: Source, descending = false, first = bounds.slice) {
  const { from, where, entity, by } = source
  const order = `order by ${by.map((one) => `${one} ${descending ? 'desc' : 'asc'}`).join(', ')}`
  const beyond = `(${by.join(', ')}) ${descending ? '<' : '>'} (${by.map(() => '?').join(', ')})`
  let after: Part[] = []
  for (let size = first; ; size = Math.min(bounds.slice, size * 8)) {
    const { sql, params } = and([where, ...after])
    // As one text: a row for each would take more time and memory than all the rest.
    const rows = `select ${entity} as seq from ${from} where ${sql} ${order} limit ?`
    const [found] = await db.ask(`select group_concat(cast(n.seq as text), ',') from (${rows}) as n`, [...params, size])
    const entities = JSON.parse(`[${found?.[0] ?? ''}]`) as number[]
    yield entities
    if (entities.length < size) return
    const next = `select ${by.join(', ')} from ${from} where ${sql} ${order} limit 1 offset ?`
    const [last] = await db.ask(next, [...params, size - 1])
    if (!last) return
    after = [part(beyond, ...last)]
    await db.pause()
  }
}

/** As many tell which set is the smallest. */
const COMPARED = 20_000

/**
 * The entities that meet all conditions, by their indexes alone: the smallest set, without those that are not in the next,
 * and so on; once they are few (`bounds.sorted`), they may fail conditions that were not looked at.
 */
export async function membersOf(db: Db, model: Model, reach: Reach, conditions: Condition[]): Promise<Members> {
  const sets = conditions.flatMap((condition, at) => {
    const { target } = condition
    // What is asked of one value is one set.
    const leading = conditions.findIndex((one) => isOwn(target, one) && one.is !== 'not in')
    const source = leading >= 0 && isOwn(target, condition) ? inOrderOf(model, target, conditions) : undefined
    if (!source) return sourcesOf(model, condition)
    return leading === at ? { sources: [source], not: false } : []
  })
  if (!reach.all) sets.push(await reached(db, model, reach))
  if (sets.every(({ not }) => not)) sets.push({ sources: [ofColumn(model, [], BY_TIME)], not: false })
  const sized = []
  for (const set of sets) sized.push({ ...set, size: await sizeOf(db, set.sources, COMPARED) })
  const [smallest, ...others] = sized.sort((one, other) => Number(one.not) - Number(other.not) || one.size - other.size)
  let members = new Members()
  for (const source of smallest!.sources)
    for await (const entities of slicesOf(db, source)) for (const one of entities) members.add(one)
  for (const { sources, not } of others) {
    if (members.size <= bounds.sorted) break
    members = await (not ? without : amongThem)(db, members, sources)
  }
  return members
}

async function amongThem(db: Db, members: Members, sources: Source[]): Promise<Members> {
  const both = new Members()
  for (const source of sources)
    for await (const entities of slicesOf(db, source)) for (const one of entities) if (members.has(one)) both.add(one)
  return both
}

async function without(db: Db, members: Members, sources: Source[]): Promise<Members> {
  const left = members.copy()
  for (const source of sources)
    for await (const entities of slicesOf(db, source)) for (const one of entities) left.delete(one)
  return left
}

/** Those of them that have one value there. */
export const alike = (db: Db, model: Model, members: Members, target: Target, value: string | number) =>
  amongThem(db, members, sourcesOf(model, { target, is: 'in', values: [value] }).sources)

/** Those of them that have no value there. */
export const lacking = (db: Db, model: Model, members: Members, target: Target) => {
  const having = inOrderOf(model, target)
  return without(db, members, having ? [having] : [])
}
