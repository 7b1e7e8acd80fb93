import type { Alteration } from '../../blueprints/alteration'
import { fromTheStart } from '../../blueprints/inforce'
import type { Survey } from '../../blueprints/kept'
import type { Model } from '../../blueprints/model'
import type { Obstacle } from '../../blueprints/shapes'
import type { Db } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { Doc } from '../document'
import { labelOf } from '../keys'
import type { Place } from '../transfer/walk'
import { docOf } from '../wire'
import { type Altered, altered, type Plan, type Trouble } from './altered'
import { entitiesOn, type Kept } from './places'

const EXAMPLES = 10

/** Goes through all entities of a blueprint to see what an alteration would do to each. Changes nothing. */
export async function survey({ db }: Tenant, model: Model, next: Model, alteration: Alteration): Promise<Survey> {
  const plan: Plan = { alteration, next }
  const found: Survey = { entities: 0, breaking: 0, rewritten: 0, problems: [] }
  if (!alteration.needed) return { ...found, entities: (await fromTheStart(db, model.key)).total }
  const duplicates = uniques(plan).map(({ key, label }) => new Duplicates(key, label))
  const { upto } = await fromTheStart(db, model.key)
  for (let from: Place = [-1, -1]; ; ) {
    const { entities, end } = await entitiesOn(db, model, { from, upto })
    if (!end) break
    for (const entity of entities) {
      const before = JSON.parse(docOf(entity.shown)) as Doc
      const made = await altered(plan, entity, before)
      found.entities++
      if (made.troubles.length) found.breaking++
      else if (made.index.length || !Bun.deepEquals(made.doc, before)) found.rewritten++
      for (const trouble of made.troubles) note(found.problems, trouble, entity)
      if (!made.troubles.length) for (const one of duplicates) await one.note(db, entity, made)
      if (alteration.recomputes) await turn()
    }
    from = end
    await turn()
  }
  const twice = duplicates.flatMap((one) => one.told())
  return {
    ...found,
    breaking: found.breaking + twice.reduce((sum, { count }) => sum + count, 0),
    problems: [...found.problems, ...twice],
  }
}

const turn = () => new Promise(setImmediate)

/** The fields of which no two entities may have the same value, as far as nobody has seen to that yet. */
export const uniques = ({ alteration, next }: Plan) =>
  next.fields
    .filter(({ key, unique }) => unique && alteration.fresh.has(key))
    .map((field) => ({ key: field.key, number: field.number, label: labelOf(field) }))

function note(problems: Obstacle[], { field, code, message }: Trouble, { identifier }: Kept) {
  const known = problems.find((one) => one.field === field && one.code === code)
  const problem = known ?? { field, code, message, count: 0, examples: [] }
  if (!known) problems.push(problem)
  problem.count++
  if (problem.examples.length < EXAMPLES) problem.examples.push(identifier)
}

type Group = { value: unknown; identifiers: string[] }

/** The values of a field that several entities have. */
class Duplicates {
  // Hashes, for there may be millions; 0 as the entity: its group is known.
  #first = new Map<number | bigint, number>()
  #groups = new Map<string, Group>()
  #count = 0

  constructor(
    private key: string,
    private label: string,
  ) {}

  async note(db: Db, { seq, identifier }: Kept, { doc, keys }: Altered) {
    const key = keys[this.label]
    if (typeof key !== 'string') return
    const hash = Bun.hash(key)
    const first = this.#first.get(hash)
    this.#first.set(hash, first === undefined ? seq : 0)
    if (first === undefined) return
    this.#count += first ? 2 : 1
    const group = this.#groups.get(key) ?? { value: doc[this.key], identifiers: [] }
    if (first && this.#groups.size < EXAMPLES) {
      const [row] = await db.ask('select identifier from entities where seq = ?', [first])
      if (row) group.identifiers.push(row[0] as string)
      this.#groups.set(key, group)
    }
    if (group.identifiers.length < EXAMPLES) group.identifiers.push(identifier)
  }

  told(): Obstacle[] {
    if (!this.#count) return []
    const duplicates = [...this.#groups.values()]
    const examples = duplicates.flatMap(({ identifiers }) => identifiers).slice(0, EXAMPLES)
    return [{ ...twice(this.key), count: this.#count, examples, duplicates }]
  }
}

/** What is said of a field that can't be unique. */
export const twice = (field: string) => ({
  field,
  code: 'DUPLICATE_VALUES',
  message: `"${field}" cannot be unique, because several entities have the same value.`,
})
