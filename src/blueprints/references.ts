import { Busy } from '../storage/errors'
import type { Db, Tx } from '../storage/port'
import type { Definition } from './shapes'

/** A relation field, as the blueprint sees it that it points to. */
export type Reference = {
  blueprint: string
  field: string
  /** Of the field in the index. */
  number: number
  onDelete: 'restrict' | 'nullify' | 'cascade'
  multi: boolean
  /** Of a list: how many values must be left. */
  minValues: number
}

export type Dispatchers = NonNullable<Definition['dispatchers']>

/**
 * The relation fields of a tenant, by the blueprint that they point to, of which changes blueprints want to be told, and
 * which have computed fields; as of one version of all blueprints.
 */
export type References = {
  version: unknown
  byTarget: Map<string, Reference[]>
  dispatchers: Map<string, Dispatchers>
  withComputedFields: Set<string>
}

/** A blueprint was changed since the references were read. */
export class StaleReferences extends Busy {}

const referencesByDb = new WeakMap<Db, References>()
const DEFINITIONS_PER_READ = 50 // definitions read by one statement

/** What points to what. It may be old, so whoever writes by it asks `refuseOld` first. */
export async function referencesOf(db: Db): Promise<References> {
  const existing = referencesByDb.get(db)
  if (existing) return existing
  // Its version is read first: should one be changed meanwhile, they count as old, and are read again.
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

/** In the transaction that relies on them. @throws NewReferences */
export async function assertReferencesCurrent(tx: Tx, { version }: References) {
  if ((await readBlueprintsVersion(tx)) !== version) throw new StaleReferences()
}

export const invalidateReferences = (db: Db) => void referencesByDb.delete(db)

/** The one that every change of a blueprint counts up. */
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
