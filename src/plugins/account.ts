import { eq } from 'drizzle-orm'
import type { Ctx } from '../accounts/guard'
import { apiTokens, users } from '../accounts/tables'
import { issue } from '../accounts/tokens'
import { register } from '../accounts/users'
import { type Answer, forbidKeeping } from '../core/etag'
import { Busy } from '../storage/errors'
import type { Db } from '../storage/port'
import { changing, forget, touch } from '../tenancy/memory'
import type { Tenant } from '../tenancy/tenants'
import { found } from './plugins'
import { plugins } from './tables'

/**
 * An API token by which a plugin calls the platform, as a user of its own with the role `plugin`. It is told only now, and
 * ends those that it had. @throws 404
 */
export async function token(ctx: Ctx, id: string, answer: Answer) {
  forbidKeeping(answer)
  const user = await accountOf(ctx, id)
  await changing(ctx, 'actors', (tx) => tx.delete(apiTokens).where(eq(apiTokens.user, user)).run())
  const { token } = await issue(ctx, user, { nickname: 'plugin' })
  return { token, user }
}

async function accountOf(tenant: Tenant, id: string): Promise<string> {
  const { account, name } = await found(tenant.db, id)
  if (account && (await isThere(tenant.db, account))) return account
  const username = `plugin-${crypto.randomUUID()}`
  const made = await register(tenant, { username, fullName: name }, ['plugin'], async (tx, { _id }) => {
    // Somebody else may have been faster, or have removed it.
    if ((await found(tx, id)).account !== account) throw new Busy()
    await tx.update(plugins).set({ account: _id }).where(eq(plugins._id, id))
    await touch(tx, 'plugins')
  })
  forget(tenant, 'plugins')
  return made._id
}

const isThere = (db: Db, user: string) => db.select({ _id: users._id }).from(users).where(eq(users._id, user)).get()
