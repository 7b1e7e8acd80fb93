import { Busy } from '../storage/errors'
import type { Db, Tx } from '../storage/port'
import { readDefinitions } from './definitions'
import { type EntityHistory, readHistories } from './history'
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
 * The relation fields of a tenant by target, the dispatchers and histories by blueprint, and the blueprints with computed
 * fields, as of one version of all blueprints.
 */
export type References = {
  version: unknown
  byTarget: Map<string, Reference[]>
  dispatchers: Map<string, Dispatchers>
  withComputedFields: Set<string>
  /** The histories of the blueprints that have one. */
  histories: Map<string, EntityHistory>
}

/** A blueprint has changed since the references were read. */
export class StaleReferences extends Busy {}

const referencesByDb = new WeakMap<Db, References>()
/** How often work is retried after a change of the blueprint; several of its indexes may become ready in a row. */
export const MAX_BLUEPRINT_RETRIES = 10

/** Returns the cached references. They may be stale, so a write that relies on them calls `assertReferencesCurrent`. */
export async function referencesOf(db: Db): Promise<References> {
  const existing = referencesByDb.get(db)
  if (existing) return existing
  // The version is read first: after a concurrent change the references are stale, and are read again.
  const version = await readBlueprintsVersion(db)
  const references: References = {
    version,
    byTarget: new Map(),
    dispatchers: new Map(),
    withComputedFields: new Set(),
    histories: await readHistories(db),
  }
  let last = ''
  for await (const definitions of readDefinitions(db)) {
    const end = definitions.at(-1)![0]
    const fields = 'select blueprint, key, number from fields where blueprint > ? and blueprint <= ?'
    const rows = (await db.query(fields, [last, end])) as [string, string, number][]
    const numbers = new Map(rows.map(([blueprint, key, number]) => [`${blueprint} ${key}`, number]))
    for (const [key, definition] of definitions) addDefinition(references, key, definition, numbers)
    last = end
  }
  referencesByDb.set(db, references)
  return references
}

/** Must run in the transaction that relies on the references. @throws StaleReferences */
export async function assertReferencesCurrent(tx: Tx, { version }: References) {
  if ((await readBlueprintsVersion(tx)) !== version) throw new StaleReferences()
}

/**
 * Runs work that calls `assertReferencesCurrent`; again, up to ten times, when a blueprint has changed since the
 * references were read. @throws 503 BUSY after that
 */
export async function withReferences<T>(db: Db, work: (references: References) => Promise<T>): Promise<T> {
  for (let retries = 0; ; retries++)
    try {
      return await work(await referencesOf(db))
    } catch (error) {
      if (!(error instanceof StaleReferences) || retries === MAX_BLUEPRINT_RETRIES) throw error
      invalidateReferences(db)
    }
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
