import { and, count, eq, sum } from 'drizzle-orm'
import type { Static } from 'elysia'
import type { Ctx } from '../accounts/guard'
import { settingsOf } from '../accounts/settings'
import { iso, now } from '../core/clock'
import { type Answer, etagOf, giveEtag, refuseStale } from '../core/etag'
import { missing, Problem } from '../core/problem'
import { given, isOn, success } from '../core/shapes'
import { answerPage, type Listing, paged, pageOf } from '../storage/lists'
import type { Db, Tx } from '../storage/port'
import { RULES } from './html'
import { sanitized } from './sanitizer'
import type { Block, BlockChange, NewBlock } from './shapes'
import { blocks } from './tables'

const MOST = 10_000 // of a tenant
const SPACE = 16 << 20 // characters of them all: a list may show a thousand of them whole

const sortable = {
  _id: blocks._id,
  name: blocks.name,
  contentType: blocks.contentType,
  created: blocks.created,
  updated: blocks.updated,
}

type Row = typeof blocks.$inferSelect
/** `raw`: as it was written, for those who may write. */
type Raw = { raw?: string }
type Filters = { name?: string; contentType?: string }

/** A page of blocks, newest first. */
export async function list(ctx: Ctx, { raw, name, contentType, ...query }: Listing & Filters & Raw, answer: Answer) {
  const page = pageOf(query, sortable)
  const filter = and(
    given(name) === undefined ? undefined : eq(blocks.name, name!),
    given(contentType) === undefined ? undefined : eq(blocks.contentType, contentType as Row['contentType']),
  )
  const rows = await paged(page, ctx.db.select().from(blocks).where(filter))
  const told = await answerPage(answer, page, rows, () => ctx.db.$count(blocks, filter))
  return seen(ctx, told, raw)
}

/** One block; throws 404. */
export const get = async (ctx: Ctx, id: string, { raw }: Raw, answer: Answer) =>
  told(ctx, await found(ctx.db, id), raw, answer)

/** A new block. @throws 400, 403 for who may not write, 409 TOO_MANY_BLOCKS. */
export async function create(ctx: Ctx, input: NewBlock, { raw }: Raw, answer: Answer) {
  await requireEditor(ctx)
  const { name, description = '', content, contentType = 'content' } = input
  const time = iso(now())
  const fresh = { _id: Bun.randomUUIDv7(), name, description, version: 1, created: time, updated: time }
  const row = { ...fresh, contentType, content, ...(await kept(ctx, contentType, content)) }
  await ctx.write(async (tx) => {
    await tx.insert(blocks).values(row)
    await refuseTooMuch(tx)
  })
  return told(ctx, row, raw, answer)
}

/** Refuses a new block that could not be kept. @throws 400 */
export async function refuseUnfit(ctx: Ctx, { content, contentType = 'content' }: NewBlock) {
  await kept(ctx, contentType, content)
}

/** Changes what it mentions. @throws 400, 403, 404, 409, 412 when stale. */
export async function change(ctx: Ctx, id: string, input: BlockChange, { raw }: Raw, answer: Answer) {
  await requireEditor(ctx)
  for (;;) {
    const before = await current(ctx.db, id, answer)
    const { name, description, contentType, content: sent } = { ...before, ...input }
    // Who sends back what was shown has not changed what was written.
    const content = !isOn(raw) && sent === before.shown ? before.content : sent
    const same = content === before.content && contentType === before.contentType && before.rules === rulesOf(before)
    const { rules, shown, size } = same ? before : await kept(ctx, contentType, content)
    const after = {
      ...before,
      ...{ name, description, contentType, content, rules, shown, size },
      ...{ version: before.version + 1, updated: iso(now()) },
    }
    // What is harmless was found before the write, so somebody else may have been faster.
    const written = await ctx.write(async (tx) => {
      if ((await current(tx, id, answer)).version !== before.version) return false
      await tx.update(blocks).set(after).where(eq(blocks._id, id))
      if (after.size > before.size) await refuseTooMuch(tx)
      return true
    })
    if (written) return told(ctx, after, raw, answer)
  }
}

/** Removes a block. @throws 403, 404, 412 when stale. */
export async function remove(ctx: Ctx, id: string, answer: Answer) {
  await requireEditor(ctx)
  await ctx.write(async (tx) => {
    await current(tx, id, answer)
    await tx.delete(blocks).where(eq(blocks._id, id))
  })
  return success
}

const found = async (db: Db, id: string) =>
  (await db.select().from(blocks).where(eq(blocks._id, id)).get()) ?? missing('block')

/** The block, if it still is what the caller has read. */
async function current(db: Db, id: string, { request }: Answer) {
  const row = await found(db, id)
  refuseStale(request, etagOf(row.version, row.updated))
  return row
}

/** Who may write: anybody who is signed in, unless the tenant names roles. */
async function mayEdit({ actor, ...tenant }: Ctx) {
  const { contentEditors } = await settingsOf(tenant, 'app-configuration')
  const allowed = (role: string) => role === '*' || actor.roles.includes(role)
  return actor.privileged || !contentEditors.length || contentEditors.some(allowed)
}

/** @throws 403 for who may not write blocks */
export async function requireEditor(ctx: Ctx) {
  if (!(await mayEdit(ctx))) throw new Problem(403, 'FORBIDDEN', 'Your roles do not allow you to write blocks.')
}

const rulesOf = ({ contentType }: Pick<Row, 'contentType'>) => (contentType === 'html' ? RULES : null)

/** What is kept beside a content: what others are shown of it, where that is not the content itself. */
async function kept(ctx: Ctx, contentType: Row['contentType'], content: string) {
  const harmless = contentType === 'html' ? await sanitized(ctx, content) : content
  const shown = harmless === content ? null : harmless
  return { rules: rulesOf({ contentType }), shown, size: content.length + (shown?.length ?? 0) }
}

async function refuseTooMuch(tx: Tx) {
  const [all] = await tx.select({ count: count(), size: sum(blocks.size) }).from(blocks)
  if (all && (all.count > MOST || Number(all.size) > SPACE))
    throw new Problem(
      409,
      'TOO_MANY_BLOCKS',
      `A tenant has room for ${MOST} blocks, of ${SPACE >> 20} MiB together. Remove some first.`,
    )
}

async function told(ctx: Ctx, row: Row, raw: string | undefined, answer: Answer) {
  giveEtag(answer, etagOf(row.version, row.updated))
  const [block] = await seen(ctx, [row], raw)
  return block!
}

/** Blocks as this caller may see them. */
async function seen(ctx: Ctx, rows: Row[], raw: string | undefined): Promise<Static<typeof Block>[]> {
  const written = isOn(raw) && (await mayEdit(ctx))
  const known = written ? rows : await renewed(ctx, rows)
  return known.map(({ _id, name, description, content, shown, contentType, created, updated }) => ({
    ...{ _id, name, description, content: written ? content : (shown ?? content) },
    ...{ contentType, created, updated },
  }))
}

/** Blocks by the rules of today: what is shown by those of an older program may do harm. */
async function renewed(ctx: Ctx, rows: Row[]): Promise<Row[]> {
  const stale = rows.filter((row) => row.rules !== rulesOf(row))
  if (!stale.length) return rows
  const renewals = new Map<string, Row>()
  for (const row of stale)
    renewals.set(row._id, { ...row, ...(await kept(ctx, row.contentType, row.content).catch(blank)) })
  const written = ctx.write(async (tx) => {
    for (const { _id, version, rules, shown, size } of renewals.values())
      await tx
        .update(blocks)
        .set({ rules, shown, size })
        .where(and(eq(blocks._id, _id), eq(blocks.version, version)))
  })
  // Nobody waits for it: who asks next finds it, or does it again.
  written.catch(() => {})
  return rows.map((row) => renewals.get(row._id) ?? row)
}

/** Today it would not be taken any more, so nothing of it is shown. */
function blank(error: unknown) {
  if (error instanceof Problem && error.status === 400) return { rules: RULES, shown: '' }
  throw error
}
