import { and, eq } from 'drizzle-orm'
import { iso, now } from '../../core/clock'
import { hashed } from '../../core/secret'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { Device } from '../sessions'
import { users } from '../tables'
import { post } from './mails'
import { devices } from './tables'

/** Tells a user by mail, after this transaction, when a session of theirs begins where none did before. */
export async function noteDevice(tenant: Pick<Tenant, 'tenant'>, tx: Tx, user: string, { userAgent, address }: Device) {
  const [device, seen] = [hashed(`${userAgent}\n${address}`), iso(now())]
  const known = and(eq(devices.user, user), eq(devices.device, device))
  if (await tx.update(devices).set({ seen }).where(known).returning().get()) return
  const other = await tx.select({ device: devices.device }).from(devices).where(eq(devices.user, user)).limit(1).get()
  await tx.insert(devices).values({ user, device, seen })
  // The first one is that of whoever signed up.
  if (!other) return
  const { email, emailVerified } = (await tx.select().from(users).where(eq(users._id, user)).get())!
  if (!email || !emailVerified) return
  await post(tenant, tx, { to: email, template: 'newDevice', user, data: { device: userAgent, address, time: seen } })
}
