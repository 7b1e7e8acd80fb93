import { and, eq } from 'drizzle-orm'
import { now, toIsoString } from '../../core/clock'
import { sha256 } from '../../core/crypto'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { users } from '../tables'
import { queueRepeatableMail } from './mails'
import { devices } from './tables'

/** The device on which a session begins, as its owner would recognise it. */
export type ClientDevice = { userAgent: string; address: string }

/** Queues a mail to a user when a session begins on a device that is new to them. */
export async function notifyNewDevice(
  tenant: Pick<Tenant, 'tenant'>,
  tx: Tx,
  user: string,
  { userAgent, address }: ClientDevice,
) {
  const [device, seen] = [sha256(`${userAgent}\n${address}`), toIsoString(now())]
  const knownDevice = and(eq(devices.user, user), eq(devices.device, device))
  if (await tx.update(devices).set({ seen }).where(knownDevice).returning().get()) return
  const otherDevice = await tx
    .select({ device: devices.device })
    .from(devices)
    .where(eq(devices.user, user))
    .limit(1)
    .get()
  await tx.insert(devices).values({ user, device, seen })
  // The first device is that of the sign-up.
  if (!otherDevice) return
  const { email, emailVerified } = (await tx.select().from(users).where(eq(users._id, user)).get())!
  if (!email || !emailVerified) return
  await queueRepeatableMail(tenant, tx, {
    to: email,
    template: 'newDevice',
    user,
    data: { device: userAgent, address, time: seen },
  })
}
