import { eq } from 'drizzle-orm'
import { issueApiToken } from '../accounts/api-tokens'
import type { Ctx } from '../accounts/context'
import { apiTokens, users } from '../accounts/tables'
import { registerUser } from '../accounts/users/users'
import { Busy } from '../storage/errors'
import type { Db } from '../storage/port'
import { bumpVersion } from '../tenancy/cache'
import type { Tenant } from '../tenancy/tenants'
import { getPlugin } from './plugins'
import { plugins } from './tables'

/**
 * Issues the API token of a plugin, which calls the platform as a user of its own with the role `plugin`. The token is
 * never shown again; it replaces the earlier ones. @throws 404
 */
export async function issueToken(ctx: Ctx, id: string) {
  const user = await ensureAccount(ctx, id)
  const { token } = await issueApiToken(ctx, user, { nickname: 'plugin' }, async (tx) => {
    // The plugin may have been removed with its account.
    await getPlugin(tx, id)
    await tx.delete(apiTokens).where(eq(apiTokens.user, user))
    await bumpVersion(tx, 'actors')
  })
  return { token, user }
}

async function ensureAccount(tenant: Tenant, id: string): Promise<string> {
  const { account, name } = await getPlugin(tenant.db, id)
  if (account && (await findUser(tenant.db, account))) return account
  const username = `plugin-${crypto.randomUUID()}`
  const user = await registerUser(tenant, { username, fullName: name }, ['plugin'], async (tx, { _id }) => {
    // A concurrent call may have created the account, or removed the plugin.
    if ((await getPlugin(tx, id)).account !== account) throw new Busy()
    await tx.update(plugins).set({ account: _id }).where(eq(plugins._id, id))
    await bumpVersion(tx, 'plugins')
  })
  return user._id
}

const findUser = (db: Db, user: string) => db.select({ _id: users._id }).from(users).where(eq(users._id, user)).get()
