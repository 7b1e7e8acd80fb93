import { and, eq } from 'drizzle-orm'
import type { Ctx } from '../accounts/context'
import { notFound } from '../core/problem'
import type { IfMatch } from '../core/response-headers'
import { applyPage, type ListQuery, parsePage, toListPage } from '../storage/pagination'
import { changeCompiled, getForUpdate, getLambda } from './lambdas'
import { versions } from './tables'

const sortable = { _id: versions.version, version: versions.version, created: versions.created }

/** Returns a page of the versions of a lambda's code, newest first. @throws 404 LAMBDA_NOT_FOUND */
export async function list({ db }: Ctx, id: string, query: ListQuery) {
  await getLambda(db, id)
  const page = parsePage(query, sortable, '-version')
  const where = eq(versions.lambda, id)
  const rows = await applyPage(page, db.select().from(versions).where(where))
  const items = rows.map(({ version, code, user, created }) => ({ version, code, user, created }))
  return toListPage(page, items, () => db.$count(versions, where))
}

/** Makes the code of an earlier version a new version. @throws 404 also VERSION_NOT_FOUND, 409, 412 when stale */
export async function rollback(ctx: Ctx, id: string, version: number, options: IfMatch) {
  await getForUpdate(ctx.db, id, options)
  const { code, js } =
    (await ctx.db
      .select()
      .from(versions)
      .where(and(eq(versions.lambda, id), eq(versions.version, version)))
      .get()) ?? notFound('version')
  return changeCompiled(ctx, id, { compiled: { code, js } }, options)
}
