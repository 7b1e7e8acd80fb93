import { and, count, eq, sum } from 'drizzle-orm'
import type { Static } from 'elysia'
import type { Ctx } from '../accounts/context'
import { now, toIsoString } from '../core/clock'
import { assertIfMatch, etagOf } from '../core/etag'
import { notFound, Problem } from '../core/problem'
import type { IfMatch, ListPage, Versioned } from '../core/response-headers'
import { isTrue, parseOptional, success } from '../core/shapes'
import { appSettings } from '../platform/settings/app-settings'
import { getSettings } from '../platform/settings/tenant-settings'
import { applyPage, type ListQuery, parsePage, toListPage } from '../storage/pagination'
import type { Db, Tx } from '../storage/port'
import { POLICY_VERSION } from './html-policy'
import { sanitizeHtml } from './sanitizer'
import type { Block, BlockChange, NewBlock } from './shapes'
import { blocks } from './tables'

const MAX_BLOCKS = 10_000 // per tenant
const MAX_TOTAL_CHARACTERS = 16 << 20 // characters per tenant: a list may return 1,000 whole blocks

const SORTABLE_COLUMNS = {
  _id: blocks._id,
  name: blocks.name,
  contentType: blocks.contentType,
  created: blocks.created,
  updated: blocks.updated,
}

type Row = typeof blocks.$inferSelect
/** `raw`: return the content as it was written, for callers who may write blocks. */
type RawOption = { raw?: string }
type BlockFilters = { name?: string; contentType?: string }

/** Returns a page of blocks, newest first. */
export async function list(
  ctx: Ctx,
  { raw, name, contentType, ...query }: ListQuery & BlockFilters & RawOption,
): Promise<ListPage<BlockResponse>> {
  const page = parsePage(query, SORTABLE_COLUMNS)
  const filter = and(
    parseOptional(name) === undefined ? undefined : eq(blocks.name, name!),
    parseOptional(contentType) === undefined ? undefined : eq(blocks.contentType, contentType as Row['contentType']),
  )
  const rows = await applyPage(page, ctx.db.select().from(blocks).where(filter))
  const { items, ...others } = await toListPage(page, rows, () => ctx.db.$count(blocks, filter))
  return { ...others, items: await toBlocks(ctx, items, raw) }
}

/** Returns a block. @throws 404 BLOCK_NOT_FOUND */
export const get = async (ctx: Ctx, id: string, { raw }: RawOption) => toVersioned(ctx, await getBlock(ctx.db, id), raw)

/** Creates a block. @throws 400, 403 when the caller may not write blocks, 409 TOO_MANY_BLOCKS */
export async function create(ctx: Ctx, input: NewBlock, { raw }: RawOption) {
  await requireEditor(ctx)
  const { name, description = '', content, contentType = 'content' } = input
  const time = toIsoString(now())
  const header = { _id: Bun.randomUUIDv7(), name, description, version: 1, created: time, updated: time }
  const row = { ...header, contentType, content, ...(await prepareContent(ctx, contentType, content)) }
  await ctx.write(async (tx) => {
    await tx.insert(blocks).values(row)
    await assertWithinLimits(tx)
  })
  return toVersioned(ctx, row, raw)
}

/** Checks the content of a new block without creating it. @throws 400 */
export async function validateNew(ctx: Ctx, { content, contentType = 'content' }: NewBlock) {
  await prepareContent(ctx, contentType, content)
}

/** Changes the fields in `input`. @throws 400, 403, 404, 409 TOO_MANY_BLOCKS, 412 when stale */
export async function update(ctx: Ctx, id: string, input: BlockChange, { raw, ifMatch }: RawOption & IfMatch) {
  await requireEditor(ctx)
  for (;;) {
    const before = await getForUpdate(ctx.db, id, ifMatch)
    const { name, description, contentType, content: sentContent } = { ...before, ...input }
    // A client that sends back the sanitized content has not changed the original.
    const content = !isTrue(raw) && sentContent === before.shown ? before.content : sentContent
    const isUnchanged =
      content === before.content && contentType === before.contentType && before.rules === policyVersionOf(before)
    const { rules, shown, size } = isUnchanged ? before : await prepareContent(ctx, contentType, content)
    const after = {
      ...before,
      ...{ name, description, contentType, content, rules, shown, size },
      ...{ version: before.version + 1, updated: toIsoString(now()) },
    }
    // Sanitizing happens before the write, so another write may have come first; then this one starts over.
    const saved = await ctx.write(async (tx) => {
      if ((await getForUpdate(tx, id, ifMatch)).version !== before.version) return false
      await tx.update(blocks).set(after).where(eq(blocks._id, id))
      if (after.size > before.size) await assertWithinLimits(tx)
      return true
    })
    if (saved) return toVersioned(ctx, after, raw)
  }
}

/** Removes a block. @throws 403, 404, 412 when stale */
export async function remove(ctx: Ctx, id: string, { ifMatch }: IfMatch) {
  await requireEditor(ctx)
  await ctx.write(async (tx) => {
    await getForUpdate(tx, id, ifMatch)
    await tx.delete(blocks).where(eq(blocks._id, id))
  })
  return success
}

const getBlock = async (db: Db, id: string) =>
  (await db.select().from(blocks).where(eq(blocks._id, id)).get()) ?? notFound('block')

/** Returns the block. @throws 404, 412 when it has changed since the caller read it */
async function getForUpdate(db: Db, id: string, ifMatch: IfMatch['ifMatch']) {
  const row = await getBlock(db, id)
  assertIfMatch(ifMatch, etagOf(row.version, row.updated))
  return row
}

/** Returns whether a caller may write blocks: every signed-in user may, unless the tenant names roles. */
async function mayEdit({ actor, ...tenant }: Ctx) {
  const { contentEditors } = await getSettings(tenant, appSettings)
  const allowed = (role: string) => role === '*' || actor.roles.includes(role)
  return actor.privileged || !contentEditors.length || contentEditors.some(allowed)
}

/** @throws 403 when the caller may not write blocks */
export async function requireEditor(ctx: Ctx) {
  if (!(await mayEdit(ctx))) throw new Problem(403, 'FORBIDDEN', 'Your roles do not allow you to write blocks.')
}

const policyVersionOf = ({ contentType }: Pick<Row, 'contentType'>) => (contentType === 'html' ? POLICY_VERSION : null)

/** Returns the columns that follow from the content. `shown` is null when sanitizing does not change it. @throws 400 */
async function prepareContent(ctx: Ctx, contentType: Row['contentType'], content: string) {
  const sanitizedContent = contentType === 'html' ? await sanitizeHtml(ctx, content) : content
  const shown = sanitizedContent === content ? null : sanitizedContent
  return { rules: policyVersionOf({ contentType }), shown, size: content.length + (shown?.length ?? 0) }
}

async function assertWithinLimits(tx: Tx) {
  const [usage] = await tx.select({ count: count(), size: sum(blocks.size) }).from(blocks)
  if (usage && (usage.count > MAX_BLOCKS || Number(usage.size) > MAX_TOTAL_CHARACTERS))
    throw new Problem(
      409,
      'TOO_MANY_BLOCKS',
      `A tenant can have at most ${MAX_BLOCKS} blocks with ${MAX_TOTAL_CHARACTERS >> 20} MiB in total. Delete some first.`,
    )
}

type BlockResponse = Static<typeof Block>

async function toVersioned(ctx: Ctx, row: Row, raw: string | undefined): Promise<Versioned<BlockResponse>> {
  const [value] = await toBlocks(ctx, [row], raw)
  return { value: value!, version: etagOf(row.version, row.updated) }
}

/** Returns blocks as this caller may see them. */
async function toBlocks(ctx: Ctx, rows: Row[], raw: string | undefined): Promise<BlockResponse[]> {
  const isRaw = isTrue(raw) && (await mayEdit(ctx))
  const currentRows = isRaw ? rows : await resanitize(ctx, rows)
  return currentRows.map(({ _id, name, description, content, shown, contentType, created, updated }) => ({
    ...{ _id, name, description, content: isRaw ? content : (shown ?? content) },
    ...{ contentType, created, updated },
  }))
}

/** Sanitizes blocks again when the policy has changed, because HTML sanitized by an older one may be harmful. */
async function resanitize(ctx: Ctx, rows: Row[]): Promise<Row[]> {
  const stale = rows.filter((row) => row.rules !== policyVersionOf(row))
  if (!stale.length) return rows
  const renewals = new Map<string, Row>()
  for (const row of stale)
    renewals.set(row._id, {
      ...row,
      ...(await prepareContent(ctx, row.contentType, row.content).catch(toBlankContent)),
    })
  const saving = ctx.write(async (tx) => {
    for (const { _id, version, rules, shown, size } of renewals.values())
      await tx
        .update(blocks)
        .set({ rules, shown, size })
        .where(and(eq(blocks._id, _id), eq(blocks.version, version)))
  })
  // Saved in the background: when it fails, the next request sanitizes again.
  saving.catch(() => {})
  return rows.map((row) => renewals.get(row._id) ?? row)
}

/** Content that the current policy rejects is shown as empty. */
function toBlankContent(error: unknown) {
  if (error instanceof Problem && error.status === 400) return { rules: POLICY_VERSION, shown: '' }
  throw error
}
