import { and, eq, lt } from 'drizzle-orm'
import { now } from '../../core/clock'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { open, type Place } from '../vault/vault'
import { stepOf } from './codes'
import { hashOf } from './recovery-codes'
import { recoveryCodes, totp } from './tables'

/** Where the vault has the secret of a user's second factor. */
export const placeOf = (user: string): Place => ({ purpose: 'totp', owner: user, name: 'secret' })

type Spend = (tx: Tx) => Promise<boolean>
const never: Spend = async () => false

/** What uses a code up, in a transaction: false when it is not right, or was used before. */
export async function spending(tenant: Tenant, user: string, code: string): Promise<Spend> {
  const digits = code.replace(/\s/g, '')
  if (!/^\d{6}$/.test(digits))
    return async (tx) => {
      const one = and(eq(recoveryCodes.hash, hashOf(user, code)), eq(recoveryCodes.user, user))
      return !!(await tx.delete(recoveryCodes).where(one).returning().get())
    }
  const step = await stepFor(tenant, user, digits)
  if (step === undefined) return never
  return async (tx) => {
    const before = and(eq(totp.user, user), eq(totp.confirmed, true), lt(totp.step, step))
    return !!(await tx.update(totp).set({ step }).where(before).returning().get())
  }
}

/** What makes a secret count by a code of it: false when it is not right, or of another secret meanwhile. */
export async function confirmation(tenant: Tenant, user: string, code: string): Promise<Spend> {
  const row = await tenant.db.select().from(totp).where(eq(totp.user, user)).get()
  const step = row && (await stepFor(tenant, user, code.replace(/\s/g, '')))
  if (step === undefined) return never
  return async (tx) => {
    const same = and(eq(totp.user, user), eq(totp.confirmed, false), eq(totp.step, row!.step))
    return !!(await tx.update(totp).set({ confirmed: true, step }).where(same).returning().get())
  }
}

async function stepFor(tenant: Tenant, user: string, code: string) {
  const secret = await open(tenant, placeOf(user))
  return secret === null ? undefined : stepOf(secret, code, now())
}
