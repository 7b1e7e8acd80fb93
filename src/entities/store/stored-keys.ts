import { partNumbers } from '../../blueprints/compound-parts'
import type { MaintainedIndexes } from '../../blueprints/field-indexes'
import type { Model, ModelField } from '../../blueprints/model'
import type { Db } from '../../storage/port'
import type { Owners } from '../history/version'
import type { Doc } from './doc'
import { fieldLabel, type IndexKeys, isSingleValued } from './index-keys'
import { extractDocumentJson } from './serializer'
import { oneOf, toChunks } from './sql-fragments'

/** The names of the fields whose index key may be left to the document, by the labels of the keys. */
export type DerivableFields = ReadonlyMap<string, string>

/** Returns the type of the values of a field whose index key mostly follows from the document, or undefined. */
export function getDerivableType(field: ModelField): 'string' | 'boolean' | undefined {
  const { type } = field.kind.jsonSchema
  return isSingleValued(field) && (type === 'string' || type === 'boolean') ? type : undefined
}

const derivableFieldsByModel = new WeakMap<Model, DerivableFields>()

function getDerivableFields(model: Model): DerivableFields {
  const existing = derivableFieldsByModel.get(model)
  if (existing) return existing
  const fields = new Map(model.fields.filter(getDerivableType).map((field) => [fieldLabel(field), field.key]))
  derivableFieldsByModel.set(model, fields)
  return fields
}

/** Returns the index key that follows from a value alone: a text is its own, unless it has another one. */
const deriveKey = (value: unknown) =>
  typeof value === 'string' ? value : typeof value === 'boolean' ? `${value}` : undefined

/** Returns the fields of a blueprint whose model is not at hand. */
export const readDerivableFields = async (db: Pick<Db, 'query'>, blueprint: string): Promise<DerivableFields> =>
  new Map(
    ((await db.query('select number, key from fields where blueprint = ?', [blueprint])) as [number, string][]).map(
      ([number, key]) => [fieldLabel({ number }), key],
    ),
  )

/** Returns the index keys of an entity as they are stored: without those that follow from the document. */
export function toStoredKeys(model: Model, doc: Doc, keys: IndexKeys): string {
  const fields = getDerivableFields(model)
  const stored: IndexKeys = {}
  for (const label in keys) {
    const name = fields.get(label)
    if (name === undefined || deriveKey(doc[name]) !== keys[label]) stored[label] = keys[label]!
  }
  return JSON.stringify(stored)
}

/** Returns the index key of a field with one value as JSON, or undefined when it follows from the document. */
export function toStoredKeyJson(field: ModelField, value: unknown): string | undefined {
  const key = field.kind.toIndexKey!(value)
  return getDerivableType(field) && deriveKey(value) === key ? undefined : JSON.stringify(key)
}

type KeyedEntity = { shown: string; keys: string }

const completeKeys = new WeakMap<KeyedEntity, IndexKeys>()

/** Returns all index keys of a stored entity. The result is cached and must not be changed. */
export function readIndexKeys(entity: KeyedEntity, of: Model | DerivableFields): IndexKeys {
  const existing = completeKeys.get(entity)
  if (existing) return existing
  const doc = JSON.parse(extractDocumentJson(entity.shown)) as Doc
  const keys = addDerivedKeys(JSON.parse(entity.keys), doc, 'fields' in of ? getDerivableFields(of) : of)
  completeKeys.set(entity, keys)
  return keys
}

function addDerivedKeys(keys: IndexKeys, doc: Doc, fields: DerivableFields): IndexKeys {
  for (const [label, name] of fields) {
    const key = deriveKey(doc[name])
    if (key !== undefined && !Object.hasOwn(keys, label)) keys[label] = key
  }
  return keys
}

/**
 * Returns the index keys that are left to the documents of entities, of all fields in these indexes, and the owners of the
 * entities, by their `seq`.
 */
export async function readDerivedKeys(
  db: Pick<Db, 'query'>,
  blueprint: string,
  { fields: indexed, compound }: MaintainedIndexes,
  entities: number[],
) {
  const numbers = new Set([
    ...[...indexed].flatMap(([number, reason]) => (reason === 'list or object' ? [] : [number])),
    ...compound.flatMap(partNumbers),
  ])
  const found = new Map<number, { keys: IndexKeys; owners: Owners }>()
  if (!numbers.size) return found
  const fields = (
    (await db.query('select number, key from fields where blueprint = ?', [blueprint])) as [number, string][]
  ).filter(([number]) => numbers.has(Number(number)))
  const labels = fields.map(([number]) => fieldLabel({ number }))
  const columns = fields.map(() => `case when substr(e.shown, 1, 1) = '{' then e.shown ->> ? end`)
  for (const chunk of toChunks(entities)) {
    const { sql, params } = oneOf('e.seq', chunk)
    const keys = fields.map(([, key]) => key)
    const selected = ['e.seq', 'e."user"', 'e.workspace', ...columns].join(', ')
    for (const [seq, user, workspace, ...values] of await db.query(`select ${selected} from entities e where ${sql}`, [
      ...keys,
      ...params,
    ]))
      found.set(Number(seq), {
        owners: { user, workspace } as Owners,
        keys: Object.fromEntries(
          labels.flatMap((label, at) => {
            const key = toDerivedKey(values[at])
            return key === undefined ? [] : [[label, key]]
          }),
        ),
      })
  }
  return found
}

/** Returns the key of a value that was read with `->>`; SQLite reads `true` as 1. Keys of numbers are always stored. */
const toDerivedKey = (value: unknown) => (typeof value === 'string' ? value : BOOLEAN_KEYS.get(value))
const BOOLEAN_KEYS = new Map<unknown, string>([
  [0, 'false'],
  [1, 'true'],
])
