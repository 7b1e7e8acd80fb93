import { eq } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { badRequest, notFound, Problem } from '../../core/problem'
import { openSecret, type SecretRef, withVault } from '../../platform/vault/vault'
import type { Db } from '../../storage/port'
import type { Ctx } from '../context'
import { workspaces } from '../memberships/tables'
import { isOtherWorkspace } from '../memberships/workspace-access'
import { users } from '../tables'

const MAX_DATA_BYTES = 64 << 10 // as JSON

type OwnerTable = SQLiteTable & { _id: SQLiteColumn }
const ownerTables = { workspace: workspaces, user: users } satisfies Record<string, OwnerTable>

/** The kinds of owners of encrypted data. */
export type OwnerKind = keyof typeof ownerTables

/**
 * Returns the data under an id, or null.
 * @throws 400 INVALID_INPUT for an id that is too long, 404 WORKSPACE_NOT_FOUND, USER_NOT_FOUND
 */
export async function get(ctx: Ctx, purpose: OwnerKind, owner: string, id?: string) {
  const secretRef = toSecretRef(purpose, owner, id)
  await assertOwnerExists(ctx.db, ctx, purpose, owner)
  const text = await openSecret(ctx, secretRef)
  return text === null ? null : (JSON.parse(text) as Record<string, unknown>)
}

/**
 * Stores an object under an id, where it replaces the previous one.
 * @throws 400 INVALID_INPUT for an id that is too long, 404 WORKSPACE_NOT_FOUND, USER_NOT_FOUND, 413 BODY_TOO_LARGE
 */
export async function put(ctx: Ctx, purpose: OwnerKind, owner: string, id: string | undefined, data: object) {
  const [secretRef, text] = [toSecretRef(purpose, owner, id), JSON.stringify(data)]
  await assertOwnerExists(ctx.db, ctx, purpose, owner)
  if (Buffer.byteLength(text) > MAX_DATA_BYTES)
    throw new Problem(413, 'BODY_TOO_LARGE', `The data must have at most ${MAX_DATA_BYTES} bytes as JSON.`)
  await withVault(ctx, async (tx, vault) => {
    await assertOwnerExists(tx, ctx, purpose, owner)
    await vault.seal(tx, secretRef, text)
  })
  return {}
}

const toSecretRef = (purpose: OwnerKind, owner: string, id = ''): SecretRef => {
  const name = id.trim() || 'default'
  if (name.length > 128) badRequest({ path: 'x-encrypted-id', message: 'The id must have at most 128 characters.' })
  return { purpose, owner, name }
}

async function assertOwnerExists(db: Db, { actor }: Ctx, kind: OwnerKind, owner: string) {
  if (kind === 'workspace' && isOtherWorkspace(actor, owner)) notFound(kind)
  const table: OwnerTable = ownerTables[kind]
  if (!(await db.select({ _id: table._id }).from(table).where(eq(table._id, owner)).get())) notFound(kind)
}
