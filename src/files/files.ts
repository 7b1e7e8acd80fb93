import { and, eq, gte, lt, not, sql } from 'drizzle-orm'
import type { Actor } from '../accounts/actors'
import type { Ctx } from '../accounts/context'
import { now, toIsoString } from '../core/clock'
import { badRequest, notFound, Problem } from '../core/problem'
import { parseFlag, parseOptional, success } from '../core/shapes'
import { isNamedSql, listFileUses } from '../entities/file-references'
import { assertQuotaLeft, reserveQuota } from '../limits/quota-check'
import { applyPage, type GrowingListQuery, parsePage, toGrowingListPage } from '../storage/pagination'
import type { Tenant } from '../tenancy/tenants'
import { type FileRow, findFile, getOwnFile, getReadableFile } from './access'
import { storeContent } from './contents'
import { readDimensions } from './dimensions'
import { type Draft, withDraft } from './drafts'
import { toFileName, toFileUrl } from './file-name'
import type { IncomingFile } from './form'
import { detectMediaType } from './media-type'
import type { FileChange, StoredFile } from './shapes'
import { files } from './tables'
import { receiveUpload, type UploadOptions } from './upload-body'
import { openUploadReservation, reserveBytes } from './upload-reservation'

const { _id, name, type, size, owner, created } = files
const sortable = { _id, name, type, size, created }

const MAX_SHOWN_USES = 10

type Filters = { name?: string; type?: string; owner?: string }

/** Returns a page of the caller's files, or of all for admins; newest first. @throws 400 */
export async function list({ db, actor }: Ctx, query: GrowingListQuery & Filters) {
  const page = parsePage(query, sortable)
  const [wantedName, wantedOwner] = [parseOptional(query.name), parseOptional(query.owner)]
  const where = and(
    actor.privileged ? undefined : eq(owner, actor.user),
    actor.token?.bound ? eq(files.workspace, actor.workspace!._id) : undefined,
    wantedOwner ? eq(owner, wantedOwner) : undefined,
    wantedName ? eq(name, wantedName) : undefined,
    toTypeCondition(parseOptional(query.type)),
  )
  const rows = await applyPage(page, db.select().from(files).where(and(where, page.after)))
  return toGrowingListPage(page, rows, () => db.$count(files, where), toStoredFile)
}

function toTypeCondition(wanted: string | undefined) {
  if (!wanted) return
  if (!/^[\w.+-]+\/(\*|[\w.+-]+)$/.test(wanted))
    return badRequest({ path: 'type', message: 'Write a media type such as image/png or image/*.' })
  if (!wanted.endsWith('/*')) return eq(type, wanted)
  const group = wanted.slice(0, -2)
  // "0" is the character after "/".
  return and(gte(type, `${group}/`), lt(type, `${group}0`))
}

/** Returns a file without its content. @throws 404 FILE_NOT_FOUND, also for a file of somebody else */
export const get = async (ctx: Ctx, id: string) => toStoredFile(await getReadableFile(ctx, id))

/** Stores the file of a request. @throws 400, 403 QUOTA_EXCEEDED, 413 FILE_TOO_LARGE, 503, 507 */
export async function upload(ctx: Ctx, query: UploadOptions, request: Request): Promise<StoredFile> {
  await assertQuotaLeft(ctx, 'files')
  using bytes = await openUploadReservation(ctx, request)
  const stored = await receiveUpload(request, { ...query, name: parseOptional(query.name) }, (incoming) =>
    withDraft(ctx, reserveBytes(incoming.content, bytes), async (draft) => {
      if (!draft.size) badRequest({ path: 'file', message: 'The file is empty.' })
      const description = await describeDraft(draft, incoming)
      return storeFile(ctx, draft, { ...description, ...(await incoming.options) })
    }),
  )
  bytes?.keep()
  return stored
}

type FileDescription = Pick<FileRow, 'name' | 'type' | 'keep' | 'width' | 'height'>

async function storeFile(ctx: Ctx, draft: Draft, description: FileDescription): Promise<StoredFile> {
  using fileCount = await reserveQuota(ctx, 'files', 1)
  await storeContent(ctx, draft)
  const row = toFileRow(ctx.actor, draft, description)
  await ctx.write((tx) => tx.insert(files).values(row))
  fileCount?.keep()
  return toStoredFile(row)
}

/** Returns what a draft is, by its content. It must be read before its content is stored, which may move it. */
export async function describeDraft(
  draft: Draft,
  { name, type: declared }: Pick<IncomingFile, 'name' | 'type'>,
): Promise<FileDescription> {
  const type = await detectMediaType(draft.beginning, declared)
  const { width = null, height = null } = (await readDimensions(draft, type)) ?? {}
  return { name: toFileName(name), type, width, height, keep: false }
}

/** Returns the row of a new file, which is unused until an entity names it. */
export const toFileRow = ({ user, workspace }: Actor, draft: Draft, description: FileDescription): FileRow => ({
  ...description,
  ...{ _id: Bun.randomUUIDv7(), size: draft.size, sha256: draft.sha256 },
  ...{ owner: user, workspace: workspace?._id ?? null, created: toIsoString(now()), unused: toIsoString(now()) },
})

/**
 * Changes whether a file stays when no entity names it, and returns it. One that shall not stay has a day from now on.
 * @throws 403, 404 FILE_NOT_FOUND
 */
export async function change(ctx: Ctx, id: string, { keep }: FileChange): Promise<StoredFile> {
  await getOwnFile(ctx, id)
  const set = { keep, unused: keep ? files.unused : toIsoString(now()) }
  const row = await ctx.write((tx) => tx.update(files).set(set).where(eq(_id, id)).returning().get())
  return { ...toStoredFile(row ?? notFound('file')), keep }
}

/**
 * Removes a file; its content goes when no other file has it. With `force`, entities may still name it.
 * @throws 403, 404 FILE_NOT_FOUND, 409 FILE_IN_USE with the places that the caller may read
 */
export async function remove(ctx: Ctx, id: string, { force }: { force?: string }) {
  await getOwnFile(ctx, id)
  const isForced = parseFlag({ force }, 'force')
  const deleted = await ctx.write((tx) =>
    tx
      .delete(files)
      .where(and(eq(_id, id), isForced ? undefined : not(sql.raw(isNamedSql('files._id')))))
      .returning({ _id }),
  )
  if (deleted.length || !(await findFile(ctx.db, id))) return success
  const message = 'Entities refer to this file. Remove it from them, or delete it with ?force=true.'
  throw new Problem(409, 'FILE_IN_USE', message, { details: await listFileUses(ctx, id, MAX_SHOWN_USES) })
}

/** Returns how many files a tenant has. */
export const countFiles = ({ db }: Tenant) => db.$count(files)

const toStoredFile = ({ unused: _, keep, width, height, ...row }: FileRow): StoredFile => ({
  ...row,
  ...(width && height && { width, height }),
  ...(keep && { keep }),
  visibility: 'private',
  url: toFileUrl(row._id, row.name),
})
