import { and, count, eq, lte, sum } from 'drizzle-orm'
import type { Ctx } from '../../accounts/guard'
import { discardSealed, sealing, type Vault } from '../../accounts/vault/vault'
import { iso, now } from '../../core/clock'
import { type Answer, etagOf, giveEtag, refuseStale } from '../../core/etag'
import { missing, Problem } from '../../core/problem'
import { given, success } from '../../core/shapes'
import { answerPage, type Listing, paged, pageOf } from '../../storage/lists'
import type { Db, Tx } from '../../storage/port'
import { forget, touch } from '../../tenancy/memory'
import { integrations } from '../integrations/tables'
import { compiled } from './code'
import { keepValues, namesAfter, PURPOSE } from './env'
import type { Lambda, LambdaChange, NewLambda } from './shapes'
import { lambdas, runs, versions } from './tables'

const MOST = 1_000 // of a tenant
const KEPT = 50 // versions of one
const SPACE = 16 << 20 // characters of their codes: a list may show them all

const sortable = { _id: lambdas._id, name: lambdas.name, created: lambdas.created, updated: lambdas.updated }

type Made = { code: string; js: string; user: string }
type Row = { lambda: typeof lambdas.$inferSelect; code: string; js: string }

/** A page of lambdas, newest first. */
export async function list({ db }: Ctx, { name, ...query }: Listing & { name?: string }, answer: Answer) {
  const page = pageOf(query, sortable)
  const filter = given(name) ? eq(lambdas.name, name!) : undefined
  const rows = await paged(page, found(db).where(filter))
  return answerPage(answer, page, rows.map(shown), () => db.$count(lambdas, filter))
}

/** One lambda; throws 404. */
export const get = async ({ db }: Ctx, id: string, answer: Answer) => told(await named(db, id), answer)

/** A new lambda. @throws 400 when its code does not compile, 409 TOO_MANY_LAMBDAS. */
export async function create(ctx: Ctx, input: NewLambda, answer: Answer) {
  const { name, description = '', code, timeoutMs = 5_000, memoryMb = 64, serviceRole = null } = input
  const [env, js, time] = [namesAfter([], input.env), await compiled(ctx, code), iso(now())]
  const lambda = {
    ...{ _id: Bun.randomUUIDv7(), name, description, version: 1, revision: 1, size: code.length },
    ...{ timeoutMs, memoryMb, env, serviceRole, created: time, updated: time },
  }
  await writing(ctx, async (tx, vault) => {
    await tx.insert(lambdas).values(lambda)
    await keepVersion(tx, lambda, { code, js, user: ctx.actor.user })
    await keepValues(tx, vault, lambda._id, env, input.env)
    await refuseTooMuch(tx)
  })
  return told({ lambda, code, js }, answer)
}

/** Changes what it mentions; another code is another version. @throws 400, 404, 409, 412 when stale. */
export async function change(ctx: Ctx, id: string, input: LambdaChange, answer: Answer) {
  const before = await current(ctx.db, id, answer)
  const sent = input.code === undefined || input.code === before.code ? undefined : input.code
  const js = sent === undefined ? undefined : await compiled(ctx, sent)
  return told(await alter(ctx, id, input, js === undefined ? undefined : { code: sent!, js }, answer), answer)
}

/** The same with a code that was compiled already. */
export async function alter(
  ctx: Ctx,
  id: string,
  input: Omit<LambdaChange, 'code'>,
  made: { code: string; js: string } | undefined,
  answer: Answer,
): Promise<Row> {
  return writing(ctx, async (tx, vault) => {
    const { lambda: before, ...old } = await current(tx, id, answer)
    const { name, description, timeoutMs, memoryMb, serviceRole } = { ...before, ...input }
    const env = namesAfter(before.env, input.env)
    const fresh = made && made.code !== old.code ? made : undefined
    const { code, js } = fresh ?? old
    const lambda = {
      ...before,
      ...{ name, description, timeoutMs, memoryMb, serviceRole, env, size: code.length },
      ...{ version: before.version + (fresh ? 1 : 0), revision: before.revision + 1, updated: iso(now()) },
    }
    if (fresh) await keepVersion(tx, lambda, { code, js, user: ctx.actor.user })
    await tx.update(lambdas).set(lambda).where(eq(lambdas._id, id))
    await keepValues(tx, vault, id, env, input.env)
    if (lambda.size > before.size) await refuseTooMuch(tx)
    return { lambda, code, js }
  })
}

/** Removes a lambda, with its versions, its environment and its log. @throws 404, 409 LAMBDA_IN_USE, 412 when stale */
export async function remove(ctx: Ctx, id: string, answer: Answer) {
  await writing(ctx, async (tx) => {
    await current(tx, id, answer)
    await refuseUsed(tx, id)
    await tx.delete(lambdas).where(eq(lambdas._id, id))
    await tx.delete(runs).where(eq(runs.lambda, id))
    await discardSealed(tx, PURPOSE, id)
  })
  return success
}

/** @throws 409 LAMBDA_IN_USE */
async function refuseUsed(tx: Tx, id: string) {
  const { _id, name, target, targetKind } = integrations
  const rows = await tx.select({ _id, name, target }).from(integrations).where(eq(targetKind, 'lambda'))
  const user = rows.find(({ target }) => 'lambdaId' in target && target.lambdaId === id)
  if (!user) return
  const message = `The integration ${user.name ?? user._id} runs it. Change or remove that first.`
  throw new Problem(409, 'LAMBDA_IN_USE', message)
}

const found = (db: Db) =>
  db
    .select({ lambda: lambdas, code: versions.code, js: versions.js })
    .from(lambdas)
    .innerJoin(versions, and(eq(versions.lambda, lambdas._id), eq(versions.version, lambdas.version)))

/** A lambda with the code that runs; throws 404. */
export const named = async (db: Db, id: string): Promise<Row> =>
  (!id.includes('\0') && (await found(db).where(eq(lambdas._id, id)).get())) || missing('lambda')

/** The lambda, if it still is what the caller has read. */
export async function current(db: Db, id: string, { request }: Answer): Promise<Row> {
  const row = await named(db, id)
  refuseStale(request, etagOf(row.lambda.revision, row.lambda.updated))
  return row
}

/** A write after which no process runs what was before. */
async function writing<T>(ctx: Ctx, work: (tx: Tx, vault: Vault) => Promise<T>): Promise<T> {
  try {
    return await sealing(ctx, async (tx, vault) => {
      const result = await work(tx, vault)
      await touch(tx, 'lambdas')
      return result
    })
  } finally {
    forget(ctx, 'lambdas')
  }
}

/** Keeps what is from now on the newest version, and the last ones before it. */
async function keepVersion(tx: Tx, { _id: lambda, version, updated: created }: Row['lambda'], made: Made) {
  await tx.insert(versions).values({ lambda, version, created, ...made })
  await tx.delete(versions).where(and(eq(versions.lambda, lambda), lte(versions.version, version - KEPT)))
}

async function refuseTooMuch(tx: Tx) {
  const [kept] = await tx.select({ count: count(), size: sum(lambdas.size) }).from(lambdas)
  if (kept && (kept.count > MOST || Number(kept.size) > SPACE))
    throw new Problem(
      409,
      'TOO_MANY_LAMBDAS',
      `A tenant has room for ${MOST} lambdas, of ${SPACE >> 20} MiB together. Remove some first.`,
    )
}

export function told(row: Row, answer: Answer): Lambda {
  giveEtag(answer, etagOf(row.lambda.revision, row.lambda.updated))
  return shown(row)
}

function shown({ lambda, code }: Row): Lambda {
  const { _id, name, description, timeoutMs, memoryMb, env, serviceRole, version, created, updated } = lambda
  return { _id, name, description, code, timeoutMs, memoryMb, env, serviceRole, version, created, updated }
}
