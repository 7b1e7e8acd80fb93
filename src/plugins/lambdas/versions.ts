import { and, eq } from 'drizzle-orm'
import type { Ctx } from '../../accounts/guard'
import type { Answer } from '../../core/etag'
import { missing } from '../../core/problem'
import { answerPage, type Listing, paged, pageOf } from '../../storage/lists'
import { alter, current, named, told } from './lambdas'
import { versions } from './tables'

const sortable = { _id: versions.version, version: versions.version, created: versions.created }

/** A page of the versions of a lambda's code, newest first. @throws 404 */
export async function list({ db }: Ctx, id: string, query: Listing, answer: Answer) {
  await named(db, id)
  const page = pageOf(query, sortable, '-version')
  const where = eq(versions.lambda, id)
  const rows = await paged(page, db.select().from(versions).where(where))
  const shown = rows.map(({ version, code, user, created }) => ({ version, code, user, created }))
  return answerPage(answer, page, shown, () => db.$count(versions, where))
}

/** Has the code of an older version run again, as a new version. @throws 404 also VERSION_NOT_FOUND, 412 when stale */
export async function rollback(ctx: Ctx, id: string, version: number, answer: Answer) {
  await current(ctx.db, id, answer)
  const { code, js } =
    (await ctx.db
      .select()
      .from(versions)
      .where(and(eq(versions.lambda, id), eq(versions.version, version)))
      .get()) ?? missing('version')
  return told(await alter(ctx, id, {}, { code, js }, answer), answer)
}
