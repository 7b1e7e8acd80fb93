import type { Model, ModelField } from '../../blueprints/model'
import type { Db } from '../../storage/port'
import type { Doc } from './doc'
import { fieldLabel, type IndexKeys, isSingleValued } from './index-keys'
import { extractDocumentJson } from './serializer'

/** The names of the fields whose index key may be left to the document, by the labels of the keys. */
export type TextFields = ReadonlyMap<string, string>

/** Returns whether the values of a field are texts, which mostly are their own index keys. */
export const isTextField = (field: ModelField) => isSingleValued(field) && field.kind.jsonSchema.type === 'string'

const textFieldsByModel = new WeakMap<Model, TextFields>()

function getTextFields(model: Model): TextFields {
  const existing = textFieldsByModel.get(model)
  if (existing) return existing
  const fields = new Map(model.fields.filter(isTextField).map((field) => [fieldLabel(field), field.key]))
  textFieldsByModel.set(model, fields)
  return fields
}

/** Returns the fields of a blueprint whose model is not at hand. */
export const readTextFields = async (db: Pick<Db, 'query'>, blueprint: string): Promise<TextFields> =>
  new Map(
    ((await db.query('select number, key from fields where blueprint = ?', [blueprint])) as [number, string][]).map(
      ([number, key]) => [fieldLabel({ number }), key],
    ),
  )

/** Returns the index keys of an entity as they are stored: without texts that are their own keys. */
export function toStoredKeys(model: Model, doc: Doc, keys: IndexKeys): string {
  const fields = getTextFields(model)
  const stored: IndexKeys = {}
  for (const label in keys) {
    const name = fields.get(label)
    if (name === undefined || doc[name] !== keys[label]) stored[label] = keys[label]!
  }
  return JSON.stringify(stored)
}

type KeyedEntity = { shown: string; keys: string }

const completeKeys = new WeakMap<KeyedEntity, IndexKeys>()

/** Returns all index keys of a stored entity. The result is cached and must not be changed. */
export function readIndexKeys(entity: KeyedEntity, of: Model | TextFields): IndexKeys {
  const existing = completeKeys.get(entity)
  if (existing) return existing
  const doc = JSON.parse(extractDocumentJson(entity.shown)) as Doc
  const keys = addTextKeys(JSON.parse(entity.keys), doc, 'fields' in of ? getTextFields(of) : of)
  completeKeys.set(entity, keys)
  return keys
}

function addTextKeys(keys: IndexKeys, doc: Doc, fields: TextFields): IndexKeys {
  for (const [label, name] of fields) {
    const value = doc[name]
    if (typeof value === 'string' && !Object.hasOwn(keys, label)) keys[label] = value
  }
  return keys
}
