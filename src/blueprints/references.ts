import { Busy } from '../storage/errors'
import type { Db, Tx } from '../storage/port'
import type { Definition } from './shapes'

/** A relation field, from the perspective of its target. */
export type Reference = {
  blueprint: string
  field: string
  /** The number of the field in the index. */
  number: number
  onDelete: 'restrict' | 'nullify' | 'cascade'
  multi: boolean
  /** The minimum number of values that must remain in a list. */
  minValues: number
}

export type Dispatchers = NonNullable<Definition['dispatchers']>

/**
 * The relation fields of a tenant by target, the dispatchers by blueprint, and the blueprints with computed fields, as
 * of one version of all blueprints.
 */
export type References = {
  version: unknown
  byTarget: Map<string, Reference[]>
  dispatchers: Map<string, Dispatchers>
  withComputedFields: Set<string>
}

/** A blueprint has changed since the references were read. */
export class StaleReferences extends Busy {}

const referencesByDb = new WeakMap<Db, References>()
const DEFINITIONS_PER_READ = 50 // definitions read by one statement

/** Returns the cached references. They may be stale, so a write that relies on them calls `assertReferencesCurrent`. */
export async function referencesOf(db: Db): Promise<References> {
  const existing = referencesByDb.get(db)
  if (existing) return existing
  // The version is read first: after a concurrent change the references are stale, and are read again.
  const version = await readBlueprintsVersion(db)
  const references: References = { version, byTarget: new Map(), dispatchers: new Map(), withComputedFields: new Set() }
  for (let last = ''; ; ) {
    const definitions = (await db.query(`select key, definition from blueprints where key > ? order by key limit ?`, [
      last,
      DEFINITIONS_PER_READ,
    ])) as [string, string][]
    const end = definitions.at(-1)?.[0] ?? ''
    const fields = 'select blueprint, key, number from fields where blueprint > ? and blueprint <= ?'
    const rows = definitions.length ? ((await db.query(fields, [last, end])) as [string, string, number][]) : []
    const numbers = new Map(rows.map(([blueprint, key, number]) => [`${blueprint} ${key}`, number]))
    for (const [key, definition] of definitions) addDefinition(references, key, JSON.parse(definition), numbers)
    if (definitions.length < DEFINITIONS_PER_READ) break
    last = end
  }
  referencesByDb.set(db, references)
  return references
}

/** Must run in the transaction that relies on the references. @throws StaleReferences */
export async function assertReferencesCurrent(tx: Tx, { version }: References) {
  if ((await readBlueprintsVersion(tx)) !== version) throw new StaleReferences()
}

export const invalidateReferences = (db: Db) => void referencesByDb.delete(db)

/** Returns the version that every change of a blueprint increments. */
const readBlueprintsVersion = async (db: Db) =>
  (await db.query("select version from versions where topic = 'blueprints'"))[0]?.[0]

function addDefinition(
  { byTarget, dispatchers: all, withComputedFields }: References,
  blueprint: string,
  { fields, dispatchers, computed = {} }: Definition,
  numbers: Map<string, number>,
) {
  if (dispatchers) all.set(blueprint, dispatchers)
  if (Object.keys(computed).length) withComputedFields.add(blueprint)
  for (const { key, target, onDelete = 'restrict', multi = false, required, min = 0 } of fields) {
    const number = numbers.get(`${blueprint} ${key}`)
    if (!target || number === undefined) continue
    const minValues = Math.max(required ? 1 : 0, Number(min))
    byTarget.set(target, [
      ...(byTarget.get(target) ?? []),
      { blueprint, field: key, number, onDelete, multi, minValues },
    ])
  }
}
