import { and, eq } from 'drizzle-orm'
import type { Ctx } from '../accounts/context'
import type { HttpContext } from '../core/etag'
import { notFound } from '../core/problem'
import { applyPage, type ListQuery, parsePage, respondWithPage } from '../storage/pagination'
import { changeCompiled, getForUpdate, getLambda, toLambdaWithEtag } from './lambdas'
import { versions } from './tables'

const sortable = { _id: versions.version, version: versions.version, created: versions.created }

/** A page of the versions of a lambda's code, newest first. @throws 404 */
export async function list({ db }: Ctx, id: string, query: ListQuery, answer: HttpContext) {
  await getLambda(db, id)
  const page = parsePage(query, sortable, '-version')
  const where = eq(versions.lambda, id)
  const rows = await applyPage(page, db.select().from(versions).where(where))
  const items = rows.map(({ version, code, user, created }) => ({ version, code, user, created }))
  return respondWithPage(answer, page, items, () => db.$count(versions, where))
}

/** Has the code of an older version run again, as a new version. @throws 404 also VERSION_NOT_FOUND, 412 when stale */
export async function rollback(ctx: Ctx, id: string, version: number, answer: HttpContext) {
  await getForUpdate(ctx.db, id, answer)
  const { code, js } =
    (await ctx.db
      .select()
      .from(versions)
      .where(and(eq(versions.lambda, id), eq(versions.version, version)))
      .get()) ?? notFound('version')
  return toLambdaWithEtag(await changeCompiled(ctx, id, {}, { code, js }, answer), answer)
}
