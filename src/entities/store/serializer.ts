import type { Actor } from '../../accounts/actors'
import { isAltering, type Model } from '../../blueprints/model'
import { listHiddenKeys } from '../../blueprints/permissions'
import { toIsoString } from '../../core/clock'
import type { Doc } from './doc'

/** The shape of entities in a response: flat or wrapped, with all or only the selected properties. */
export type ResponseShape = { flat: boolean; select?: string[] }

export const FLAT_SHAPE: ResponseShape = { flat: true }

/** Characters after which a page of large entities ends early, with a link to the next page. */
export const MAX_PAGE_CHARACTERS = 16 << 20

/** The system properties of an entity, which are shown to everybody who may read it. */
export type EntityHeader = {
  _id: string
  identifier: string
  created: number
  updated: number
  user: string | null
  workspace: string | null
}

/**
 * An entity as it is read, and passed on until it is sent: its system properties and its document, as a text of lines.
 * Putting the answer together from it takes no parsing. No system property contains the end of a line. The line of an
 * `_id` that is the identifier is empty.
 */
export const packEntity = ({ _id, identifier, created, updated, user, workspace }: EntityHeader, doc: string) =>
  `${toStoredId({ _id, identifier }) ?? ''}\n${created}\n${updated}\n${user ?? ''}\n${workspace ?? ''}\n${identifier}\n${doc}`

/** Returns an `_id` as it is stored: it is null if it is the identifier. */
export const toStoredId = ({ _id, identifier }: Pick<EntityHeader, '_id' | 'identifier'>) =>
  _id === identifier ? null : _id

/** Returns the SQL for the `_id` of an entity. */
export const idSql = (row = '') => `coalesce(${row}_id, ${row}identifier)`

const PACKED_COLUMNS = ['_id', 'created', 'updated', '"user"', 'workspace', 'identifier']

/** Returns the SQL for an entity in the form of `packEntity`. */
const packSql = (row: string, text: string) =>
  `concat(${PACKED_COLUMNS.map((column) => `${row}${column}, '\n', `).join('')}${text})`

/** In texts of earlier versions, this stands between the system properties, as JSON without braces, and the document. */
const METADATA_SEPARATOR = ',"metadata":'

let [cachedOwners, cachedOwnersJson] = ['', '']

/** Returns the JSON of the lines with the user and the workspace, which often are those of the entity before. */
function toOwnersJson(owners: string) {
  if (owners === cachedOwners) return cachedOwnersJson
  const [user, workspace] = owners.split('\n')
  const toJson = (owner: string | undefined) => JSON.stringify(owner || null)
  ;[cachedOwners, cachedOwnersJson] = [owners, `","user":${toJson(user)},"workspace":${toJson(workspace)}`]
  return cachedOwnersJson
}

/** Returns the system properties as JSON without braces. The fewer parts it is put together from, the faster it is sent. */
export function extractHeaderJson(packed: string): string {
  if (packed.startsWith('"')) return packed.slice(0, packed.indexOf(METADATA_SEPARATOR))
  const idEnd = packed.indexOf('\n')
  const createdEnd = packed.indexOf('\n', idEnd + 1)
  const updatedEnd = packed.indexOf('\n', createdEnd + 1)
  const ownersEnd = packed.indexOf('\n', packed.indexOf('\n', updatedEnd + 1) + 1)
  const identifier = JSON.stringify(packed.slice(ownersEnd + 1, packed.indexOf('\n', ownersEnd + 1)))
  const id = idEnd ? `"${packed.slice(0, idEnd)}"` : identifier
  const [created, updated] = [+packed.slice(idEnd + 1, createdEnd), +packed.slice(createdEnd + 1, updatedEnd)]
  const createdAt = toIsoString(created)
  const updatedAt = updated === created ? createdAt : toIsoString(updated)
  const owners = toOwnersJson(packed.slice(updatedEnd + 1, ownersEnd))
  return `"_id":${id},"identifier":${identifier},"created":"${createdAt}","updated":"${updatedAt}${owners}`
}

/** Returns where the lines of the system properties end. */
function findText(packed: string) {
  let start = 0
  for (let line = 0; line < PACKED_COLUMNS.length; line++) start = packed.indexOf('\n', start) + 1
  return start
}

/** Returns the JSON of the properties of an entity. */
export function extractDocumentJson(packed: string): string {
  if (packed.startsWith('{')) return packed
  const start = packed.startsWith('"') ? 0 : findText(packed)
  if (packed[start] === '{') return packed.slice(start)
  return packed.slice(packed.indexOf(METADATA_SEPARATOR, start) + METADATA_SEPARATOR.length)
}

/** Returns the owners of an entity that was just read, and when it was changed. */
export function parseOwners(packed: string): Pick<EntityHeader, 'user' | 'workspace' | 'updated'> {
  const createdEnd = packed.indexOf('\n', packed.indexOf('\n') + 1)
  const updatedEnd = packed.indexOf('\n', createdEnd + 1)
  const userEnd = packed.indexOf('\n', updatedEnd + 1)
  return {
    updated: Number(packed.slice(createdEnd + 1, updatedEnd)),
    user: packed.slice(updatedEnd + 1, userEnd) || null,
    workspace: packed.slice(userEnd + 1, packed.indexOf('\n', userEnd + 1)) || null,
  }
}

/** Returns the system properties of an entity. */
export function parseHeader(packed: string): EntityHeader {
  const { created, updated, ...rest } = JSON.parse(`{${extractHeaderJson(packed)}}`)
  return { ...rest, created: Date.parse(created), updated: Date.parse(updated) }
}

/**
 * Returns the SQL for an entity in the form of `packEntity`, of a row that is by default `e`. During an alteration, some
 * entities have their document in another column than others.
 */
export const shownColumnSql = (model: Model, row = 'e.') => packSql(row, documentSql(model, row))

/** Returns the SQL for the document of an entity alone, for `extractDocumentJson`. */
export const documentSql = (model: Model, row = 'e.') =>
  isAltering(model) ? `case when ${row}form = ${model.form} then ${row}altered else ${row}shown end` : `${row}shown`

/** Returns the SQL for an entity in the form of `packEntity` when the blueprint is not known. */
export const shownInForceSql = (row = '') =>
  packSql(
    row,
    `case when ${row}form is null then ${row}shown
      when ${row}form = (select b.form from blueprints b where b.code = ${row}blueprint) then ${row}altered else ${row}shown end`,
  )

/**
 * Returns a function that turns an entity of `packEntity` into the JSON of a response. When all properties are shown, its
 * document is copied unparsed; in the flat shape, the properties also appear beside `metadata`.
 */
export function createSerializer(model: Model, actor: Actor | undefined, { flat, select }: ResponseShape) {
  const hidden = listHiddenKeys(model, actor)
  if (!select && !hidden.length)
    return (shown: string) => joinJson(extractHeaderJson(shown), extractDocumentJson(shown), flat)
  return (shown: string) => JSON.stringify(shapeEntity(parseEntity(shown, hidden), { flat, select }))
}

/** A text that is made of an entity of `packEntity`. The same name always stands for the same text. */
export type EntityFormat = { name: 'parts' | 'flat' | 'wrapped'; write(shown: string): string }

/** An entity whose parts are JSON, in the form of earlier versions, which everything that reads `packEntity` accepts. */
export const PARTS: EntityFormat = {
  name: 'parts',
  write: (shown) => extractHeaderJson(shown) + METADATA_SEPARATOR + extractDocumentJson(shown),
}

/** Returns the format that is nearest to the JSON of a response, and a function that makes the JSON of it. */
export function chooseFormat(
  model: Model,
  actor: Actor | undefined,
  shape: ResponseShape,
): [format: EntityFormat, write: (text: string) => string] {
  const write = createSerializer(model, actor, shape)
  const isWhole = !shape.select && !listHiddenKeys(model, actor).length
  return isWhole ? [{ name: shape.flat ? 'flat' : 'wrapped', write }, (text) => text] : [PARTS, write]
}

/** Returns the JSON of an entity from that of its system properties, without braces, and of its document. */
export function joinJson(header: string, doc: string, flat: boolean) {
  return flat && doc !== '{}' ? `{${header},"metadata":${doc},${doc.slice(1)}` : `{${header},"metadata":${doc}}`
}

export type ParsedEntity = Doc & { metadata: Doc }

export function parseEntity(shown: string, hidden: string[] = []): ParsedEntity {
  const entity = JSON.parse(joinJson(extractHeaderJson(shown), extractDocumentJson(shown), false)) as ParsedEntity
  for (const key of hidden) delete entity.metadata[key]
  return entity
}

/** Returns the properties of an entity that a shape shows. */
export function shapeEntity(entity: ParsedEntity, { flat, select }: ResponseShape): Doc {
  if (select) return pickSelected(entity, flat, select)
  return flat ? { ...entity, ...entity.metadata } : entity
}

function pickSelected({ metadata: doc, ...system }: ParsedEntity, flat: boolean, select: string[]) {
  const pick = (from: Doc, also: string[] = []) =>
    Object.fromEntries(Object.entries(from).filter(([key]) => select.includes(key) || also.includes(key)))
  const metadata = select.includes('metadata') ? doc : pick(doc)
  return { ...pick(system, ['_id', 'identifier']), metadata, ...(flat && metadata) }
}
