import { and, eq, gte, lt } from 'drizzle-orm'
import type { Ctx } from '../accounts/context'
import type { DeletedOwner } from '../accounts/owner-deleted'
import { now, toIsoString } from '../core/clock'
import type { HttpContext } from '../core/etag'
import { badRequest, notFound } from '../core/problem'
import { parseOptional, success } from '../core/shapes'
import { assertQuotaLeft, reserveQuota } from '../limits/quota-check'
import { applyPage, type GrowingListQuery, parsePage, respondWithGrowingPage } from '../storage/pagination'
import type { Db, Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import { storeContent } from './contents'
import { readDimensions } from './dimensions'
import { type Draft, withDraft } from './drafts'
import { toFileName, toFileUrl } from './file-name'
import { detectMediaType } from './media-type'
import type { StoredFile } from './shapes'
import { files } from './tables'
import { receiveUpload } from './upload-body'

const { _id, name, type, size, owner, created } = files
const sortable = { _id, name, type, size, created }

export type FileRow = typeof files.$inferSelect
type Filters = { name?: string; type?: string; owner?: string }

/** Returns a page of the caller's files, or of all for admins; newest first. @throws 400 */
export async function list({ db, actor }: Ctx, query: GrowingListQuery & Filters, answer: HttpContext) {
  const page = parsePage(query, sortable)
  const [wantedName, wantedOwner] = [parseOptional(query.name), parseOptional(query.owner)]
  const where = and(
    actor.privileged ? undefined : eq(owner, actor.user),
    wantedOwner ? eq(owner, wantedOwner) : undefined,
    wantedName ? eq(name, wantedName) : undefined,
    toTypeCondition(parseOptional(query.type)),
  )
  const rows = await applyPage(page, db.select().from(files).where(and(where, page.after)))
  return respondWithGrowingPage(answer, page, rows, () => db.$count(files, where), toStoredFile)
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
export async function upload(ctx: Ctx, query: { name?: string }, request: Request): Promise<StoredFile> {
  await assertQuotaLeft(ctx, 'files')
  return receiveUpload(request, parseOptional(query.name), (incoming) =>
    withDraft(ctx, incoming.content, async (draft) => {
      if (!draft.size) badRequest({ path: 'file', message: 'The file is empty.' })
      return storeFile(ctx, draft, toFileName(incoming.name), await detectMediaType(draft.beginning, incoming.type))
    }),
  )
}

async function storeFile(ctx: Ctx, draft: Draft, name: string, type: string): Promise<StoredFile> {
  using fileCount = await reserveQuota(ctx, 'files', 1)
  using bytes = await reserveQuota(ctx, 'storage', draft.size)
  // The draft may be moved when its content is stored.
  const { width = null, height = null } = (await readDimensions(draft, type)) ?? {}
  await storeContent(ctx, draft)
  const { sha256, size } = draft
  const [owner, workspace] = [ctx.actor.user, ctx.actor.workspace?._id ?? null]
  const row: FileRow = {
    ...{ _id: Bun.randomUUIDv7(), name, type, size, width, height, sha256, owner, workspace },
    created: toIsoString(now()),
  }
  await ctx.write((tx) => tx.insert(files).values(row))
  fileCount?.keep()
  bytes?.keep()
  return toStoredFile(row)
}

/** Removes a file; its content goes when no other file has it. @throws 404 FILE_NOT_FOUND */
export async function remove(ctx: Ctx, id: string) {
  await getReadableFile(ctx, id)
  await ctx.write((tx) => tx.delete(files).where(eq(_id, id)))
  return success
}

/** Returns a file that the caller may read and remove. @throws 404 FILE_NOT_FOUND */
export async function getReadableFile({ db, actor }: Ctx, id: string): Promise<FileRow> {
  const row = await getFile(db, id)
  return actor.privileged || row.owner === actor.user ? row : notFound('file')
}

/** Returns a file. @throws 404 FILE_NOT_FOUND */
export const getFile = async (db: Pick<Db, 'select'>, id: string): Promise<FileRow> =>
  (await db.select().from(files).where(eq(_id, id)).get()) ?? notFound('file')

/** Removes the files of a deleted user, which nobody but admins could read. */
export async function deleteOwnerFiles(_: Pick<Tenant, 'tenant'>, tx: Tx, { type, id }: DeletedOwner) {
  if (type === 'user') await tx.delete(files).where(eq(owner, id))
}

/** Returns how many files a tenant has. */
export const countFiles = ({ db }: Tenant) => db.$count(files)

const toStoredFile = ({ width, height, ...row }: FileRow): StoredFile => ({
  ...row,
  ...(width && height && { width, height }),
  visibility: 'private',
  url: toFileUrl(row._id, row.name),
})
