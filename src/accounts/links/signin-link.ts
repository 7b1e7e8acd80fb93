import { Problem } from '../../core/problem'
import type { Tenant } from '../../tenancy/tenants'
import { consumeOneTimeToken, issueOneTimeToken } from '../one-time-tokens'
import { startSession } from '../signin'
import { getUser } from '../users/users'
import type { LinkSignIn } from './shapes'

/** Returns a token that signs a user in once, within an hour, without a password. */
export const issueSigninToken = (tenant: Tenant, user: string): Promise<string> =>
  tenant.write((tx) => issueOneTimeToken(tx, 'signinLink', user))

/**
 * Signs the user in for whom a link was made, as `signIn` does.
 * @throws 400 INVALID_TOKEN
 */
export async function signInByLink(tenant: Tenant, { token, authType }: LinkSignIn, request: Request) {
  const row = await tenant.write((tx) => consumeOneTimeToken(tx, 'signinLink', token))
  if (!row) throw new Problem(400, 'INVALID_TOKEN', 'This sign-in link is invalid, has expired, or was used before.')
  return startSession(tenant, await getUser(tenant, row.user), authType, request)
}
