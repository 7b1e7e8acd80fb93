import { eq, inArray } from 'drizzle-orm'
import type { Ctx, PublicCtx } from '../accounts/context'
import { toChunks } from '../core/chunks'
import { notFound, Problem } from '../core/problem'
import { isNamedReadably } from '../entities/file-references'
import type { NamedFile } from '../entities/write/file-values'
import type { Db } from '../storage/port'
import { toFileUrl } from './file-name'
import { files } from './tables'

const FILES_PER_READ = 500

export type FileRow = typeof files.$inferSelect

/** Returns a file, whoever may read it, or undefined. */
export const findFile = (db: Pick<Db, 'select'>, id: string): Promise<FileRow | undefined> =>
  db.select().from(files).where(eq(files._id, id)).get()

/** Returns a file, whoever may read it. @throws 404 FILE_NOT_FOUND */
export const getFile = async (db: Pick<Db, 'select'>, id: string): Promise<FileRow> =>
  (await findFile(db, id)) ?? notFound('file')

/**
 * Returns a file that the caller may read: an own one, any for admins, and one that a field names which the caller may
 * read in an entity, also as a guest.
 */
export async function findReadableFile(ctx: PublicCtx, id: string): Promise<FileRow | undefined> {
  const file = await findFile(ctx.db, id)
  return file && (await mayRead(ctx, file)) ? file : undefined
}

/** Returns a file that the caller may read. @throws 404 FILE_NOT_FOUND */
export const getReadableFile = async (ctx: PublicCtx, id: string): Promise<FileRow> =>
  (await findReadableFile(ctx, id)) ?? notFound('file')

/** Returns a file that the caller may change or remove. @throws 404 FILE_NOT_FOUND, 403 for one that the caller may only read */
export async function getOwnFile(ctx: Ctx, id: string): Promise<FileRow> {
  const file = await getReadableFile(ctx, id)
  if (isOwn(ctx, file)) return file
  throw new Problem(403, 'FORBIDDEN', 'Only the owner of this file and admins can change or delete it.')
}

/** Returns those of the files that the caller may read, as entities name them. */
export async function findReadableFiles(ctx: PublicCtx, ids: string[]): Promise<NamedFile[]> {
  const readable: NamedFile[] = []
  for (const chunk of toChunks(ids, FILES_PER_READ))
    for (const file of await ctx.db.select().from(files).where(inArray(files._id, chunk)))
      if (await mayRead(ctx, file)) readable.push({ ...file, url: toFileUrl(file._id, file.name) })
  return readable
}

const mayRead = (ctx: PublicCtx, file: FileRow) => isOwn(ctx, file) || isNamedReadably(ctx, file._id)

/** A token that is bound to a workspace acts only there. */
function isOwn({ actor }: PublicCtx, { owner, workspace }: FileRow) {
  if (!actor || !(actor.privileged || owner === actor.user)) return false
  return !actor.token?.bound || workspace === actor.workspace?._id
}
