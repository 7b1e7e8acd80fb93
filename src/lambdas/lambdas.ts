import { and, count, eq, lte, sum } from 'drizzle-orm'
import type { Ctx } from '../accounts/context'
import { now, toIsoString } from '../core/clock'
import { assertIfMatch, etagOf } from '../core/etag'
import { extensions } from '../core/extension'
import { notFound, Problem } from '../core/problem'
import type { IfMatch, Versioned } from '../core/response-headers'
import { parseOptional, success } from '../core/shapes'
import { deleteSecrets, type Vault, withVault } from '../platform/vault/vault'
import { applyPage, type ListQuery, parsePage, toListPage } from '../storage/pagination'
import type { Db, Tx } from '../storage/port'
import { bumpVersion, invalidate } from '../tenancy/cache'
import { compileCode } from './compilation'
import { mergeNames, storeValues, VAULT_PURPOSE } from './env'
import type { Lambda, LambdaChange, NewLambda } from './shapes'
import { lambdas, runs, versions } from './tables'

const MAX_LAMBDAS = 1_000 // per tenant
const MAX_VERSIONS = 50 // per lambda
const MAX_TOTAL_CODE_LENGTH = 16 << 20 // characters per tenant: a list may return all of them

const sortable = { _id: lambdas._id, name: lambdas.name, created: lambdas.created, updated: lambdas.updated }

type NewVersion = { code: string; js: string; user: string }
type Row = { lambda: typeof lambdas.$inferSelect; code: string; js: string }

/** Returns a page of lambdas, newest first. */
export async function list({ db }: Ctx, { name, ...query }: ListQuery & { name?: string }) {
  const page = parsePage(query, sortable)
  const filter = parseOptional(name) ? eq(lambdas.name, name!) : undefined
  const rows = await applyPage(page, selectWithCode(db).where(filter))
  return toListPage(page, rows.map(toLambda), () => db.$count(lambdas, filter))
}

/** Returns a lambda. @throws 404 LAMBDA_NOT_FOUND */
export const get = async ({ db }: Ctx, id: string) => toVersionedLambda(await getLambda(db, id))

/** Creates a lambda. @throws 400 when its code does not compile, 409 TOO_MANY_LAMBDAS, 503 LAMBDA_BUSY */
export async function create(ctx: Ctx, input: NewLambda) {
  const { name, description = '', code, timeoutMs = 5_000, memoryMb = 64, serviceRole = null } = input
  const [env, js, time] = [mergeNames([], input.env), await compileCode(ctx, code), toIsoString(now())]
  const lambda = {
    ...{ _id: Bun.randomUUIDv7(), name, description, version: 1, revision: 1, size: code.length },
    ...{ timeoutMs, memoryMb, env, serviceRole, created: time, updated: time },
  }
  await writeWithSecrets(ctx, async (tx, vault) => {
    await tx.insert(lambdas).values(lambda)
    await storeVersion(tx, lambda, { code, js, user: ctx.actor.user })
    await storeValues(tx, vault, lambda._id, env, input.env)
    await assertWithinQuota(tx)
  })
  return toVersionedLambda({ lambda, code, js })
}

/** Changes the fields in `input`; changed code becomes a new version. @throws 400, 404, 409, 412 when stale, 503 */
export async function change(ctx: Ctx, id: string, { code, ...input }: LambdaChange, options: IfMatch) {
  const before = await getForUpdate(ctx.db, id, options)
  const compiled = code === undefined || code === before.code ? undefined : { code, js: await compileCode(ctx, code) }
  return changeCompiled(ctx, id, { ...input, compiled }, options)
}

/**
 * Changes a lambda whose new code, if any, has been compiled.
 * @throws 400, 404, 409 TOO_MANY_LAMBDAS, 412 when stale
 */
export async function changeCompiled(
  ctx: Ctx,
  id: string,
  { compiled, ...input }: Omit<LambdaChange, 'code'> & { compiled?: { code: string; js: string } },
  options: IfMatch,
) {
  const row = await writeWithSecrets(ctx, async (tx, vault) => {
    const { lambda: before, ...old } = await getForUpdate(tx, id, options)
    const { name, description, timeoutMs, memoryMb, serviceRole } = { ...before, ...input }
    const env = mergeNames(before.env, input.env)
    const newVersion = compiled && compiled.code !== old.code ? compiled : undefined
    const { code, js } = newVersion ?? old
    const lambda = {
      ...before,
      ...{ name, description, timeoutMs, memoryMb, serviceRole, env, size: code.length },
      ...{ version: before.version + (newVersion ? 1 : 0), revision: before.revision + 1, updated: toIsoString(now()) },
    }
    if (newVersion) await storeVersion(tx, lambda, { code, js, user: ctx.actor.user })
    await tx.update(lambdas).set(lambda).where(eq(lambdas._id, id))
    await storeValues(tx, vault, id, env, input.env)
    if (lambda.size > before.size) await assertWithinQuota(tx)
    return { lambda, code, js }
  })
  return toVersionedLambda(row)
}

/** Removes a lambda with its versions, environment and log. @throws 404, 409 LAMBDA_IN_USE, 412 when stale */
export async function remove(ctx: Ctx, id: string, options: IfMatch) {
  await writeWithSecrets(ctx, async (tx) => {
    await getForUpdate(tx, id, options)
    await assertUnused(tx, id)
    await tx.delete(lambdas).where(eq(lambdas._id, id))
    await tx.delete(runs).where(eq(runs.lambda, id))
    await deleteSecrets(tx, VAULT_PURPOSE, id)
  })
  return success
}

/** Functions that return a user of a lambda, such as `the integration Orders`. A used lambda cannot be removed. */
export const lambdaUsers = extensions<(tx: Tx, lambda: string) => Promise<string | undefined>>('users of lambdas')

/** @throws 409 LAMBDA_IN_USE */
async function assertUnused(tx: Tx, id: string) {
  for (const find of lambdaUsers()) {
    const user = await find(tx, id)
    if (user) throw new Problem(409, 'LAMBDA_IN_USE', `The lambda is used by ${user}. Change or remove that first.`)
  }
}

const selectWithCode = (db: Db) =>
  db
    .select({ lambda: lambdas, code: versions.code, js: versions.js })
    .from(lambdas)
    .innerJoin(versions, and(eq(versions.lambda, lambdas._id), eq(versions.version, lambdas.version)))

/** Returns a lambda with its current code. @throws 404 LAMBDA_NOT_FOUND */
export const getLambda = async (db: Db, id: string): Promise<Row> =>
  (!id.includes('\0') && (await selectWithCode(db).where(eq(lambdas._id, id)).get())) || notFound('lambda')

/** Returns the lambda. @throws 404, 412 when it has changed since the caller read it */
export async function getForUpdate(db: Db, id: string, { ifMatch }: IfMatch): Promise<Row> {
  const row = await getLambda(db, id)
  assertIfMatch(ifMatch, etagOf(row.lambda.revision, row.lambda.updated))
  return row
}

/** Runs a write, and then invalidates the cached lambdas of every process. */
async function writeWithSecrets<T>(ctx: Ctx, work: (tx: Tx, vault: Vault) => Promise<T>): Promise<T> {
  try {
    return await withVault(ctx, async (tx, vault) => {
      const result = await work(tx, vault)
      await bumpVersion(tx, 'lambdas')
      return result
    })
  } finally {
    invalidate(ctx, 'lambdas')
  }
}

/** Stores a version, and deletes all but the newest 50. */
async function storeVersion(tx: Tx, { _id: lambda, version, updated: created }: Row['lambda'], newVersion: NewVersion) {
  await tx.insert(versions).values({ lambda, version, created, ...newVersion })
  await tx.delete(versions).where(and(eq(versions.lambda, lambda), lte(versions.version, version - MAX_VERSIONS)))
}

async function assertWithinQuota(tx: Tx) {
  const [total] = await tx.select({ count: count(), size: sum(lambdas.size) }).from(lambdas)
  if (total && (total.count > MAX_LAMBDAS || Number(total.size) > MAX_TOTAL_CODE_LENGTH))
    throw new Problem(
      409,
      'TOO_MANY_LAMBDAS',
      `A tenant can have at most ${MAX_LAMBDAS} lambdas, with ${MAX_TOTAL_CODE_LENGTH >> 20} MiB of code in total. Remove some first.`,
    )
}

const toVersionedLambda = (row: Row): Versioned<Lambda> => ({
  value: toLambda(row),
  version: etagOf(row.lambda.revision, row.lambda.updated),
})

function toLambda({ lambda, code }: Row): Lambda {
  const { _id, name, description, timeoutMs, memoryMb, env, serviceRole, version, created, updated } = lambda
  return { _id, name, description, code, timeoutMs, memoryMb, env, serviceRole, version, created, updated }
}
