import type { Actor } from '../../accounts/actors'
import { isAltering, type Model } from '../../blueprints/model'
import { mayReadField } from '../../blueprints/permissions'
import { toIsoString } from '../../core/clock'
import type { Doc } from './doc'

/** The shape of entities in a response: flat or wrapped, with all or only the selected properties. */
export type ResponseShape = { flat: boolean; select?: string[] }

export const FLAT_SHAPE: ResponseShape = { flat: true }

/** Characters after which a page of large entities ends early, with a link to the next page. */
export const MAX_PAGE_CHARACTERS = 16 << 20

/** A JSON text in the place of a value. */
export class RawJson {
  constructor(readonly json: string) {}
}

/** The system properties of an entity, which are shown to everybody who may read it. */
export type EntityHeader = {
  _id: string
  identifier: string
  created: number
  updated: number
  user: string | null
  workspace: string | null
}

const METADATA_SEPARATOR = ',"metadata":'

/** Returns the stored JSON of an entity: the wrapped shape without its braces, so that reads only copy it. */
export const toStoredJson = ({ _id, identifier, created, updated, user, workspace }: EntityHeader, doc: string) =>
  JSON.stringify({
    _id,
    identifier,
    created: toIsoString(created),
    updated: toIsoString(updated),
    user,
    workspace,
  }).slice(1, -1) +
  METADATA_SEPARATOR +
  doc

/** Returns the JSON of the properties. Quotes in strings are escaped, so the first separator is the right one. */
export const extractDocumentJson = (shown: string) =>
  shown.slice(shown.indexOf(METADATA_SEPARATOR) + METADATA_SEPARATOR.length)

/** Returns the system properties from the stored JSON. */
export function parseHeader(shown: string): EntityHeader {
  const { created, updated, ...rest } = JSON.parse(`{${shown.slice(0, shown.indexOf(METADATA_SEPARATOR))}}`)
  return { ...rest, created: Date.parse(created), updated: Date.parse(updated) }
}

/**
 * Returns the SQL for the stored JSON of a row, by default `e`. During an alteration, some entities have it in another
 * column than others.
 */
export const shownColumnSql = (model: Model, row = 'e.') =>
  isAltering(model) ? `case when ${row}form = ${model.form} then ${row}altered else ${row}shown end` : `${row}shown`

/** Returns the SQL for the stored JSON of a row when the blueprint is not known. */
export const shownInForceSql = (row = '') =>
  `case when ${row}form = (select b.form from blueprints b where b.key = ${row}blueprint) then ${row}altered else ${row}shown end`

/**
 * Returns a function that turns stored JSON into the JSON of a response. When all properties are shown, the text is
 * copied unparsed; in the flat shape, the properties also appear beside `metadata`. `fill` may replace values by
 * `RawJson`, and returns additional properties.
 */
export function createSerializer(
  model: Model,
  actor: Actor | undefined,
  { flat, select }: ResponseShape,
  fill?: (entity: ParsedEntity) => Record<string, RawJson>,
) {
  const hidden = model.guarded ? model.fields.filter((field) => !mayReadField(field, actor)).map(({ key }) => key) : []
  if (fill)
    return (shown: string) => {
      const entity = parseEntity(shown, hidden)
      const more = fill(entity)
      return toJson({ ...(select ? pickSelected(entity, flat, select) : toFullEntity(entity, flat)), ...more })
    }
  if (select) return (shown: string) => JSON.stringify(pickSelected(parseEntity(shown, hidden), flat, select))
  if (hidden.length) return (shown: string) => JSON.stringify(toFullEntity(parseEntity(shown, hidden), flat))
  return flat ? toFlatJson : (shown: string) => `{${shown}}`
}

function toFlatJson(shown: string) {
  const doc = extractDocumentJson(shown)
  return doc === '{}' ? `{${shown}}` : `{${shown},${doc.slice(1)}`
}

export type ParsedEntity = Doc & { metadata: Doc }

export function parseEntity(shown: string, hidden: string[] = []): ParsedEntity {
  const entity = JSON.parse(`{${shown}}`) as ParsedEntity
  for (const key of hidden) delete entity.metadata[key]
  return entity
}

const toFullEntity = (entity: ParsedEntity, flat: boolean) => (flat ? { ...entity, ...entity.metadata } : entity)

function pickSelected({ metadata: doc, ...system }: ParsedEntity, flat: boolean, select: string[]) {
  const pick = (from: Doc, also: string[] = []) =>
    Object.fromEntries(Object.entries(from).filter(([key]) => select.includes(key) || also.includes(key)))
  const metadata = select.includes('metadata') ? doc : pick(doc)
  return { ...pick(system, ['_id', 'identifier']), metadata, ...(flat && metadata) }
}

/** Returns the JSON of an entity that contains `RawJson` values. */
function toJson(entity: Doc): string {
  let json = ''
  for (const [key, value] of Object.entries(entity)) {
    const text =
      value instanceof RawJson ? value.json : key === 'metadata' ? toJson(value as Doc) : JSON.stringify(value)
    json += `${json && ','}${JSON.stringify(key)}:${text}`
  }
  return `{${json}}`
}
