import type { PublicCtx } from '../../accounts/context'
import { filePathOf, isFilePath, parseFileId } from '../../blueprints/file-fields'
import type { Model, ModelField } from '../../blueprints/model'
import { formatBytes, parseSize } from '../../core/byte-size'
import { slot } from '../../core/extension'
import { badRequest, type FieldError } from '../../core/problem'
import type { Tx } from '../../storage/port'
import type { Doc } from '../store/doc'

/** A file as the fields that name it need it. */
export type NamedFile = { _id: string; name: string; type: string; size: number; url: string }

/** The files that values of a request name, by id: those that the writer may read. */
export type NamedFiles = ReadonlyMap<string, NamedFile>

/** The functions of the area files that entities need. */
export type FileStore = {
  /** Returns those of the files that the caller may read. */
  findReadableFiles(ctx: PublicCtx, ids: string[]): Promise<NamedFile[]>
  /** Keeps files from being removed as unused for another day, and returns the ids of those that exist. */
  claimFiles(tx: Tx, ids: string[]): Promise<Set<string>>
}

export const fileStore = slot<FileStore>('file store')

export const NO_FILES: NamedFiles = new Map()

/**
 * Returns bodies of entities whose values of file fields are URLs in place of ids and other forms of the URLs, and the
 * files that they name; `uploads` come with them. Nothing is read for a blueprint without file fields.
 */
export async function resolveFileValues<Body>(
  ctx: PublicCtx,
  { fileFields }: Model,
  bodies: Body[],
  uploads: NamedFile[] = [],
): Promise<{ bodies: Body[]; files: NamedFiles }> {
  const ids = new Set<string>()
  if (fileFields.length)
    for (const body of bodies)
      replaceValues(body, fileFields, (value) => {
        const id = parseFileId(value)
        if (id !== undefined) ids.add(id)
        return value
      })
  if (!ids.size) return { bodies, files: NO_FILES }
  const files = new Map(uploads.map((file) => [file._id, file]))
  const others = [...ids].filter((id) => !files.has(id))
  for (const file of await fileStore().findReadableFiles(ctx, others)) files.set(file._id, file)
  const toUrl = (value: unknown) => {
    const id = parseFileId(value)
    // The URL of an unknown file is refused as such in the transaction.
    return id === undefined ? value : (files.get(id)?.url ?? (isFilePath(value) ? value : filePathOf(id)))
  }
  return { bodies: bodies.map((body) => replaceValues(body, fileFields, toUrl)), files }
}

type Replace = (value: unknown) => unknown

/** Returns a copy of a body, which may be anything, with other values of the fields at the top level and in `metadata`. */
function replaceValues<Body>(body: Body, fields: ModelField[], replace: Replace): Body {
  if (!isObject(body)) return body
  const { metadata } = body
  return {
    ...replaceIn(body, fields, replace),
    ...(isObject(metadata) && { metadata: replaceIn(metadata, fields, replace) }),
  }
}

function replaceIn<Properties extends Doc>(properties: Properties, fields: ModelField[], replace: Replace): Properties {
  const replaced = fields.flatMap(({ key }) => {
    if (!Object.hasOwn(properties, key)) return []
    const value = properties[key]
    return [[key, Array.isArray(value) ? value.map(replace) : replace(value)]]
  })
  return { ...properties, ...Object.fromEntries(replaced) }
}

const isObject = (value: unknown): value is Doc => value !== null && typeof value === 'object' && !Array.isArray(value)

/**
 * Checks that the changed values of file fields name files that exist, that the writer may read and that the fields take,
 * and keeps these files from being removed.
 * @throws 400 with the path of each value
 */
export async function assertFilesUsable(tx: Tx, model: Model, doc: Doc, stored: Doc, files: NamedFiles) {
  if (!model.fileFields.length) return
  const values = listFileValues(model, doc, stored)
  if (!values.length) return
  assertAccepted(values, files)
  const existing = await fileStore().claimFiles(tx, [...new Set(values.map(({ id }) => id))])
  const missing = values.find(({ id }) => !existing.has(id))
  if (missing) badRequest(missingFileError(missing))
}

/** Checks files like `assertFilesUsable`, but not whether they exist. @throws 400 with the path of each value */
export const assertFilesAccepted = (model: Model, doc: Doc, stored: Doc, files: NamedFiles) =>
  assertAccepted(listFileValues(model, doc, stored), files)

function assertAccepted(values: FileValue[], files: NamedFiles) {
  const flaws = values.flatMap((value) => findFlaw(value, files.get(value.id)) ?? [])
  if (flaws.length) badRequest(...flaws.slice(0, 100))
}

/** Returns whether `assertFilesUsable` would refuse none of several new entities, with one statement for all of them. */
export async function areFilesUsable(
  tx: Tx,
  model: Model,
  entities: { doc: Doc }[],
  files: NamedFiles,
): Promise<boolean> {
  if (!model.fileFields.length) return true
  const values = entities.flatMap(({ doc }) => listFileValues(model, doc, {}))
  if (values.some((value) => findFlaw(value, files.get(value.id)))) return false
  const ids = new Set(values.map(({ id }) => id))
  return !ids.size || (await fileStore().claimFiles(tx, [...ids])).size === ids.size
}

type FileValue = { field: ModelField; path: string; id: string }

function listFileValues({ fileFields }: Model, doc: Doc, stored: Doc): FileValue[] {
  return fileFields.flatMap((field) => {
    const { key, multi } = field
    const value = doc[key]
    if (value === undefined || Bun.deepEquals(value, stored[key])) return []
    const kept = new Set<unknown>([stored[key]].flat())
    return [value].flat().flatMap((one, n) => {
      const id = kept.has(one) ? undefined : parseFileId(one)
      return id === undefined ? [] : [{ field, path: multi ? `/${key}/${n}` : `/${key}`, id }]
    })
  })
}

function findFlaw(value: FileValue, file: NamedFile | undefined): FieldError | undefined {
  if (!file) return missingFileError(value)
  const { field, path } = value
  const { key, accept } = field
  if (accept && !accept.some((type) => isOfType(file.type, type)))
    return { path, message: `${key} takes ${accept.join(', ')}; "${file.name}" is ${file.type}.` }
  if (file.size > maxBytesOf(field)) return fileTooLargeError(value, file.name)
}

/** Returns the error of a file that is larger than its field takes. */
export const fileTooLargeError = ({ field, path }: Pick<FileValue, 'field' | 'path'>, name: string): FieldError => ({
  path,
  message: `${field.key} takes files of up to ${formatBytes(maxBytesOf(field), 'en')}; "${name}" is larger.`,
})

/** The same for a file that does not exist and for one that the writer may not read. */
const missingFileError = ({ path, id }: FileValue): FieldError => ({
  path,
  message: `There is no file "${id.slice(0, 100)}".`,
})

const isOfType = (type: string, accepted: string) =>
  accepted.endsWith('/*') ? type.startsWith(accepted.slice(0, -1)) : type === accepted

/** Returns the size of the largest file that a field takes, in bytes. */
export const maxBytesOf = ({ maxSize }: Pick<ModelField, 'maxSize'>): number =>
  maxSize === undefined ? Number.POSITIVE_INFINITY : (parseSize(`${maxSize}`) ?? Number.POSITIVE_INFINITY)
