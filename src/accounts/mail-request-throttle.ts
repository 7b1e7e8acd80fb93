import { eq } from 'drizzle-orm'
import { clientNetwork } from '../tenancy/client-connection'
import type { Tenant } from '../tenancy/tenants'
import { findKnownDevice } from './device-cookie'
import { countAttempt } from './signin-throttle'
import { slowStrangers } from './stranger-throttle'
import { users } from './tables'

/**
 * Counts a request for a mail to an address. A device on which its user has signed in has a limit of its own, so that
 * nobody else can use it up; other requests are answered alike, whether a user has the address or not. Returns whether
 * it is such a device.
 * @throws 429 RATE_LIMITED
 */
export async function countMailRequest(
  tenant: Tenant,
  of: 'e-mail sign-in' | 'forgotten password',
  emailKey: string,
  request: Request,
) {
  const user = await tenant.db.select({ _id: users._id }).from(users).where(eq(users.emailKey, emailKey)).get()
  const device = await findKnownDevice(request, tenant, user?._id ?? '')
  await countAttempt(tenant, { account: emailKey, address: clientNetwork(request), device, of })
  if (!device) await slowStrangers(tenant, of)
  return device !== undefined
}
