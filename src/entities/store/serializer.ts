import type { Actor } from '../../accounts/actors'
import { isAltering, type Model } from '../../blueprints/model'
import { mayReadField } from '../../blueprints/permissions'
import { toIsoString } from '../../core/clock'
import type { Doc } from './doc'

/** How the caller wants entities: flat or wrapped, whole or in part. */
export type ResponseShape = { flat: boolean; select?: string[] }

export const FLAT_SHAPE: ResponseShape = { flat: true }

/** Characters; a page of large entities ends here, and a link leads on. */
export const MAX_PAGE_CHARACTERS = 16 << 20

/** JSON that is made already, to stand where a value would. */
export class RawJson {
  constructor(readonly json: string) {}
}

/** What everybody is told of an entity beside its properties. */
export type EntityHeader = {
  _id: string
  identifier: string
  created: number
  updated: number
  user: string | null
  workspace: string | null
}

const METADATA_SEPARATOR = ',"metadata":'

/** What is kept of an entity to be shown: the wrapped form as JSON without its braces, so that reading copies it. */
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

/** The JSON of the properties in that. Inside of a text a quote has a backslash before it, so the first is the right one. */
export const extractDocumentJson = (shown: string) =>
  shown.slice(shown.indexOf(METADATA_SEPARATOR) + METADATA_SEPARATOR.length)

/** What is not a property in that. */
export function parseHeader(shown: string): EntityHeader {
  const { created, updated, ...rest } = JSON.parse(`{${shown.slice(0, shown.indexOf(METADATA_SEPARATOR))}}`)
  return { ...rest, created: Date.parse(created), updated: Date.parse(updated) }
}

/**
 * Where that is read: in the row `e`, unless the row is named otherwise. While entities are altered, some have it in
 * another column than others.
 */
export const shownColumnSql = (model: Model, row = 'e.') =>
  isAltering(model) ? `case when ${row}form = ${model.form} then ${row}altered else ${row}shown end` : `${row}shown`

/** The same for whoever does not know the blueprint. */
export const shownInForceSql = (row = '') =>
  `case when ${row}form = (select b.form from blueprints b where b.key = ${row}blueprint) then ${row}altered else ${row}shown end`

/**
 * Makes the JSON of entities for a caller from what is kept of them. Where every property may be shown, it is copied as
 * text, unparsed; in the flat shape the properties stand beside `metadata` once more. `fill` may put what is made already
 * in the place of values, and answers what else is to be shown.
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

/** The JSON of an entity in which some values are made already. */
function toJson(entity: Doc): string {
  let json = ''
  for (const [key, value] of Object.entries(entity)) {
    const text =
      value instanceof RawJson ? value.json : key === 'metadata' ? toJson(value as Doc) : JSON.stringify(value)
    json += `${json && ','}${JSON.stringify(key)}:${text}`
  }
  return `{${json}}`
}
