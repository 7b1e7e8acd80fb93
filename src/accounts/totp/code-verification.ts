import { and, eq, lt } from 'drizzle-orm'
import { now } from '../../core/clock'
import { Problem } from '../../core/problem'
import { openSecret, type SecretRef } from '../../platform/vault/vault'
import type { Tx } from '../../storage/port'
import { clientNetwork } from '../../tenancy/client-connection'
import type { Tenant } from '../../tenancy/tenants'
import { findKnownDevice } from '../device-cookie'
import { countAttempt } from '../signin-throttle'
import { findMatchingStep } from './codes'
import { hashRecoveryCode } from './recovery-codes'
import { recoveryCodes, totp } from './tables'

/** Returns the place of a user's TOTP secret in the vault. */
export const toTotpSecretRef = (user: string): SecretRef => ({ purpose: 'totp', owner: user, name: 'secret' })

/** Returns whether a user signs in with a second factor. */
export const isTotpEnabled = async ({ db }: Pick<Tenant, 'db'>, user: string) =>
  !!(await db
    .select({ user: totp.user })
    .from(totp)
    .where(and(eq(totp.user, user), eq(totp.confirmed, true)))
    .get())

/**
 * Counts an attempt to enter a code of a user, and returns its subjects for `recordSuccess`.
 * @throws 429 RATE_LIMITED
 */
export async function countCodeAttempt(tenant: Tenant, user: string, request: Request) {
  const device = await findKnownDevice(request, tenant, user)
  const subjects = {
    account: user,
    address: clientNetwork(request),
    device,
    telling: { user },
    of: 'second factor',
  } as const
  await countAttempt(tenant, subjects)
  return subjects
}

/** Returns the error for a code that is wrong or was used before; 401 during a sign-in, 403 otherwise. */
export const invalidCode = (status: 401 | 403) =>
  new Problem(status, 'INVALID_CODE', 'The code is incorrect or was already used. Wait for the next one.')

type ConsumeCode = (tx: Tx) => Promise<boolean>
const rejectCode: ConsumeCode = async () => false

/**
 * Returns a function that consumes a code in a transaction. It returns false when the code is wrong or was used before.
 */
export async function prepareCodeUse(tenant: Tenant, user: string, code: string): Promise<ConsumeCode> {
  const digits = code.replace(/\s/g, '')
  if (!/^\d{6}$/.test(digits))
    return async (tx) => {
      const isRecoveryCode = and(eq(recoveryCodes.hash, hashRecoveryCode(user, code)), eq(recoveryCodes.user, user))
      return !!(await tx.delete(recoveryCodes).where(isRecoveryCode).returning().get())
    }
  const step = await findStep(tenant, user, digits)
  if (step === undefined) return rejectCode
  return async (tx) => {
    const isUnusedStep = and(eq(totp.user, user), eq(totp.confirmed, true), lt(totp.step, step))
    return !!(await tx.update(totp).set({ step }).where(isUnusedStep).returning().get())
  }
}

/**
 * Returns a function that confirms a secret in a transaction by a code of it. It returns false when the code is wrong
 * or the secret was replaced meanwhile.
 */
export async function prepareConfirmation(tenant: Tenant, user: string, code: string): Promise<ConsumeCode> {
  const row = await tenant.db.select().from(totp).where(eq(totp.user, user)).get()
  const step = row && (await findStep(tenant, user, code.replace(/\s/g, '')))
  if (step === undefined) return rejectCode
  return async (tx) => {
    const isUnchanged = and(eq(totp.user, user), eq(totp.confirmed, false), eq(totp.step, row!.step))
    return !!(await tx.update(totp).set({ confirmed: true, step }).where(isUnchanged).returning().get())
  }
}

async function findStep(tenant: Tenant, user: string, code: string) {
  const secret = await openSecret(tenant, toTotpSecretRef(user))
  return secret === null ? undefined : findMatchingStep(secret, code, now())
}
