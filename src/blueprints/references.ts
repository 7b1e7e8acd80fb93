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
  least: number
}

export type Dispatchers = NonNullable<Definition['dispatchers']>

/**
 * The relation fields of a tenant, by the blueprint that they point to, of which changes blueprints want to be told, and
 * which have computed fields; as of one version of all blueprints.
 */
export type References = {
  version: unknown
  to: Map<string, Reference[]>
  dispatchers: Map<string, Dispatchers>
  computing: Set<string>
}

/** A blueprint was changed since the references were read. */
export class NewReferences extends Busy {}

const known = new WeakMap<Db, References>()
const AT_ONCE = 50 // definitions read by one statement

/** What points to what. It may be old, so whoever writes by it asks `refuseOld` first. */
export async function referencesOf(db: Db): Promise<References> {
  const found = known.get(db)
  if (found) return found
  // Its version is read first: should one be changed meanwhile, they count as old, and are read again.
  const version = await versionOf(db)
  const references: References = { version, to: new Map(), dispatchers: new Map(), computing: new Set() }
  for (let last = ''; ; ) {
    const some = (await db.ask(`select key, definition from blueprints where key > ? order by key limit ?`, [
      last,
      AT_ONCE,
    ])) as [string, string][]
    const end = some.at(-1)?.[0] ?? ''
    const fields = 'select blueprint, key, number from fields where blueprint > ? and blueprint <= ?'
    const rows = some.length ? ((await db.ask(fields, [last, end])) as [string, string, number][]) : []
    const numbers = new Map(rows.map(([blueprint, key, number]) => [`${blueprint} ${key}`, number]))
    for (const [key, definition] of some) add(references, key, JSON.parse(definition), numbers)
    if (some.length < AT_ONCE) break
    last = end
  }
  known.set(db, references)
  return references
}

/** In the transaction that relies on them. @throws NewReferences */
export async function refuseOld(tx: Tx, { version }: References) {
  if ((await versionOf(tx)) !== version) throw new NewReferences()
}

export const forgetReferences = (db: Db) => void known.delete(db)

/** The one that every change of a blueprint counts up. */
const versionOf = async (db: Db) => (await db.ask("select version from versions where topic = 'blueprints'"))[0]?.[0]

function add(
  { to, dispatchers: all, computing }: References,
  blueprint: string,
  { fields, dispatchers, computed = {} }: Definition,
  numbers: Map<string, number>,
) {
  if (dispatchers) all.set(blueprint, dispatchers)
  if (Object.keys(computed).length) computing.add(blueprint)
  for (const { key, target, onDelete = 'restrict', multi = false, required, min = 0 } of fields) {
    const number = numbers.get(`${blueprint} ${key}`)
    if (!target || number === undefined) continue
    const least = Math.max(required ? 1 : 0, Number(min))
    to.set(target, [...(to.get(target) ?? []), { blueprint, field: key, number, onDelete, multi, least }])
  }
}
