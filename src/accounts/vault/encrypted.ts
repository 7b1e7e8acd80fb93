import { eq } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { type Answer, forbidKeeping } from '../../core/etag'
import { invalid, missing, Problem } from '../../core/problem'
import type { Db } from '../../storage/port'
import type { Ctx } from '../guard'
import { users } from '../tables'
import { isElsewhere } from '../workspaces/reach'
import { workspaces } from '../workspaces/tables'
import { open, type Place, sealing } from './vault'

const MOST = 64 << 10 // bytes of JSON

const tables = { workspace: workspaces, user: users } satisfies Record<string, SQLiteTable & { _id: SQLiteColumn }>

/** Of whom data may be kept encrypted. */
export type Owner = keyof typeof tables

/** What is kept under an id, or null. @throws 404 */
export async function get(ctx: Ctx, purpose: Owner, owner: string, id: string | undefined, answer: Answer) {
  forbidKeeping(answer)
  const place = placeOf(purpose, owner, id)
  await refuseUnknown(ctx.db, ctx, place)
  const text = await open(ctx, place)
  return text === null ? null : (JSON.parse(text) as Record<string, unknown>)
}

/** Keeps an object in the place of what was there. @throws 404, 413 */
export async function put(ctx: Ctx, purpose: Owner, owner: string, id: string | undefined, data: object) {
  const [place, text] = [placeOf(purpose, owner, id), JSON.stringify(data)]
  await refuseUnknown(ctx.db, ctx, place)
  if (Buffer.byteLength(text) > MOST)
    throw new Problem(413, 'BODY_TOO_LARGE', `At most ${MOST} bytes of JSON are kept under one id.`)
  await sealing(ctx, async (tx, vault) => {
    await refuseUnknown(tx, ctx, place)
    await vault.seal(tx, place, text)
  })
  return {}
}

const placeOf = (purpose: Owner, owner: string, id = ''): Place => {
  const name = id.trim() || 'default'
  if (name.length > 128) invalid({ path: 'x-encrypted-id', message: 'An id has at most 128 characters.' })
  return { purpose, owner, name }
}

async function refuseUnknown(db: Db, { actor }: Ctx, { purpose, owner }: Place) {
  if (purpose === 'workspace' && isElsewhere(actor, owner)) missing(purpose)
  const { _id } = tables[purpose as Owner]
  const found = await db
    .select({ _id })
    .from(tables[purpose as Owner])
    .where(eq(_id, owner))
    .get()
  if (!found) missing(purpose)
}
