import type { PublicCtx } from '../accounts/context'
import { getModel } from '../blueprints/blueprints'
import type { Model, ModelField } from '../blueprints/model'
import { requireRowScope } from '../blueprints/permissions'
import { config } from '../config'
import { isForm, requireStorable } from '../core/body'
import { InexactNumber, parseExactJson, toInexactNumberError } from '../core/exact-numbers'
import { slot } from '../core/extension'
import { badRequest, Problem } from '../core/problem'
import { parseFlag } from '../core/shapes'
import type { Tx } from '../storage/port'
import { reserveBody } from '../tenancy/body-budget'
import type { Doc } from './store/doc'
import { unknownPropertyMessage } from './write/document'
import { fileTooLargeError, maxBytesOf, type NamedFile } from './write/file-values'

/** What a form is checked with while it arrives; each may throw to refuse it. */
export type FormReceiver = { onFile(field: string): FileLimit; onValue(field: string, text: string): void }

/** How many bytes a file of a form may have, and what refuses it by its name once it has more. */
export type FileLimit = { maxBytes: number; refuse(name: string): never }

export type UploadedFile = NamedFile & { field: string }

/** The files of a form, which are complete, but not yet files of the tenant. */
export type ReceivedUploads = {
  files: UploadedFile[]
  /** Stores the contents of the files. Another call does nothing more. @throws 403 QUOTA_EXCEEDED, 503 */
  store(): Promise<void>
  /** Makes them files of the writer. */
  insert(tx: Tx, keep: boolean): Promise<void>
  /** To be called after the transaction: what was reserved of quotas is used. */
  keep(): void
}

/** Receives the multipart form of a request, and runs `use` before its files are removed from the disk. */
export const entityFormReceiver =
  slot<
    <T>(
      ctx: PublicCtx,
      request: Request,
      receiver: FormReceiver,
      use: (uploads: ReceivedUploads) => Promise<T>,
    ) => Promise<T>
  >('receiver of entity forms')

/** Files that are written together with the entity that names them. */
export type EntityUploads = Pick<ReceivedUploads, 'files' | 'store' | 'keep'> & { insert(tx: Tx): Promise<void> }

type Write = (body: unknown, uploads?: EntityUploads) => Promise<Response>

/**
 * Writes an entity whose body is JSON, or a multipart form with a part for each property.
 * @throws 400, 401, 403, 404, 413 before the form has arrived, and what `write` throws
 */
export async function writeFromBody(
  ctx: PublicCtx,
  key: string,
  operation: 'create' | 'update',
  { body, request }: { body: unknown; request: Request },
  write: Write,
): Promise<Response> {
  if (!isForm(request)) return write(body)
  const model = await getModel(ctx, key)
  requireRowScope(model, operation, ctx.actor)
  const parts = new FormParts(model, ctx, request)
  return entityFormReceiver()(ctx, request, parts, (uploads) => {
    const { files, store, keep } = uploads
    return write(parts.toBody(files), { files, store, keep, insert: (tx) => uploads.insert(tx, parts.keep) })
  })
}

const SYSTEM_PARTS = ['identifier', 'user', 'workspace']

/** The parts of a form, in the order in which they arrived. */
class FormParts implements FormReceiver {
  #parts: { name: string; text?: string }[] = []
  #size = 0
  keep = false

  constructor(
    private model: Model,
    private ctx: PublicCtx,
    private request: Request,
  ) {}

  onFile = (name: string): FileLimit => {
    const field = this.#requireField(name)
    if (field?.type !== 'file') return badRequest({ path: `/${name}`, message: `${name} takes no files.` })
    const number = this.#parts.filter((part) => part.name === name && part.text !== '').length
    this.#parts.push({ name })
    const path = field.multi ? `/${name}/${number}` : `/${name}`
    return { maxBytes: maxBytesOf(field), refuse: (file) => badRequest(fileTooLargeError({ field, path }, file)) }
  }

  onValue = (name: string, text: string) => {
    this.#size += text.length
    if (this.#size > config.ATOLL_BODY_LIMIT)
      throw new Problem(
        413,
        'BODY_TOO_LARGE',
        `The values of a form have at most ${config.ATOLL_BODY_LIMIT} characters.`,
      )
    reserveBody(this.request, this.ctx.tenant, this.#size, config.ATOLL_BODY_LIMIT)
    if (name === 'keep' && !this.model.field.has(name)) this.keep = !!parseFlag({ keep: text }, 'keep')
    else {
      this.#requireField(name)
      this.#parts.push({ name, text })
    }
  }

  #requireField(name: string): ModelField | undefined {
    const field = this.model.field.get(name)
    if (!field && !SYSTEM_PARTS.includes(name))
      badRequest({ path: `/${name.slice(0, 100)}`, message: unknownPropertyMessage(this.model, this.ctx.actor, name) })
    return field
  }

  /** Returns the parts as the properties of an entity. An empty part clears its property. @throws 400 */
  toBody(files: UploadedFile[]): Doc {
    const left = Map.groupBy(files, ({ field }) => field)
    const values = this.#parts.flatMap(({ name, text }) => {
      if (text !== undefined) return [{ name, value: parseText(name, this.model.field.get(name), text) }]
      const file = left.get(name)?.shift()
      // An input for files that was left empty.
      return [{ name, value: file?.url ?? null }]
    })
    const body: Doc = {}
    for (const [name, group] of Map.groupBy(values, (part) => part.name)) {
      const given = group.map(({ value }) => value).filter((value) => value !== null)
      if (this.model.field.get(name)?.multi) body[name] = given.length ? given : null
      else if (group.length > 1)
        badRequest({ path: `/${name}`, message: `${name} is given ${group.length} times, but it takes one value.` })
      else body[name] = given[0] ?? null
    }
    return requireStorable(body)
  }
}

/**
 * Returns the value of a text. One that is no value of the field is kept as it is, so that validation rejects it.
 * @throws 400 for a number that would be changed
 */
function parseText(name: string, field: ModelField | undefined, text: string): unknown {
  if (text === '') return null
  const type = field?.kind.jsonSchema.type ?? 'string'
  if (type === 'string') return text
  try {
    return parseExactJson(text)
  } catch (error) {
    if (!(error instanceof InexactNumber)) return text
    const { path, message } = toInexactNumberError(error, text)
    return badRequest({ path: `/${name}${path}`, message })
  }
}
