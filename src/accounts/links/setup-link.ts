import { DAY_MS, now } from '../../core/clock'
import { decrypt, encrypt } from '../../core/encryption'
import { Problem } from '../../core/problem'
import { deriveKey } from '../../tenancy/installation-keys'
import type { Tenant } from '../../tenancy/tenants'
import { completeSignUp, startSession } from '../signin'
import { hasOtherAdmin, registerUser } from '../users/users'
import type { SetUp } from './shapes'

const LINK_TTL_MS = DAY_MS
const PURPOSE = 'setup-link'

/**
 * Returns a token that creates the first administrator of a tenant within 24 hours, or undefined when there is one
 * already. It is used up by this: a tenant never loses its last administrator.
 */
export async function issueSetupToken(tenant: Tenant): Promise<string | undefined> {
  if (await hasOtherAdmin(tenant.db, '')) return
  return encrypt(await deriveKey(tenant.tenant, PURPOSE), String(now() + LINK_TTL_MS), PURPOSE).toString('base64url')
}

async function assertSetupToken({ tenant }: Tenant, token: string) {
  const key = await deriveKey(tenant, PURPOSE)
  let expires = 0
  try {
    expires = Number(decrypt(key, Buffer.from(token, 'base64url'), PURPOSE))
  } catch {
    // A token that was not made here counts as expired.
  }
  if (!(expires > now()))
    throw new Problem(
      400,
      'INVALID_TOKEN',
      'This set-up link is invalid or has expired. Start the server again to get a new one.',
    )
}

/**
 * Creates the first administrator of a tenant and signs them in, as `signUp` does.
 * @throws 400 INVALID_TOKEN, 409 SETUP_COMPLETE when there is an administrator already
 */
export async function completeSetup(tenant: Tenant, { token, ...input }: SetUp, request: Request) {
  await assertSetupToken(tenant, token)
  const user = await registerUser(tenant, input, ['admin', 'user'], async (tx, created) => {
    if (await hasOtherAdmin(tx, created._id))
      throw new Problem(409, 'SETUP_COMPLETE', 'This tenant has an administrator already. Sign in instead.')
    await completeSignUp(tenant, tx, created)
  })
  return startSession(tenant, user, input.authType, request)
}
