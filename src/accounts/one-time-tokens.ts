import { and, eq, gt, isNotNull, lt, sql } from 'drizzle-orm'
import { DAY_MS, HOUR_MS, now, toIsoString } from '../core/clock'
import { generateToken, sha256 } from '../core/crypto'
import { deleteInBatches } from '../jobs/batch-delete'
import type { Lease } from '../jobs/with-lease'
import type { Db, Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import { generateCode, isCode, MAX_CODE_TRIES } from './mail-codes'
import { oneTimeTokens, signinFailures } from './tables'

/** How long a token is valid, in ms. */
const TOKEN_TTL_MS = {
  verification: 3 * DAY_MS,
  passwordReset: HOUR_MS,
  emailRevert: 7 * DAY_MS,
  secondFactor: 5 * 60_000,
  redirect: 60_000,
  linking: 10 * 60_000,
  signinLink: HOUR_MS,
}
/** How long the code of a mail is valid, in ms. */
const CODE_TTL_MS = 10 * 60_000

export type TokenPurpose = keyof typeof TOKEN_TTL_MS

type TokenData = Record<string, string>

/** Issues a token that can be used once, and returns it. Only its hash is stored. */
export async function issueOneTimeToken(
  tx: Tx,
  purpose: TokenPurpose,
  user: string,
  data: TokenData = {},
): Promise<string> {
  const token = generateToken()
  const row = { hash: sha256(token), purpose, user, data, expires: toIsoString(now() + TOKEN_TTL_MS[purpose]) }
  await tx.insert(oneTimeTokens).values(row)
  return token
}

/** A purpose whose mails have a code beside the token. */
export type CodePurpose = 'verification' | 'passwordReset'

/**
 * Issues a token and a code for a mail to an address of a user; one of them can be used once. Earlier codes for the
 * purpose end, and with them the tries that were counted.
 */
export async function issueTokenAndCode(
  tx: Tx,
  purpose: CodePurpose,
  user: string,
  mailbox: { email: string; emailKey: string },
): Promise<{ token: string; code: string }> {
  const [token, code] = [await issueOneTimeToken(tx, purpose, user, mailbox), generateCode()]
  const hasCode = and(eq(oneTimeTokens.user, user), eq(oneTimeTokens.purpose, purpose), isNotNull(oneTimeTokens.code))
  await tx.update(oneTimeTokens).set({ code: null }).where(hasCode)
  const { emailKey } = mailbox
  const change = { code: sha256(code), emailKey, codeExpires: toIsoString(now() + CODE_TTL_MS) }
  await tx
    .update(oneTimeTokens)
    .set(change)
    .where(eq(oneTimeTokens.hash, sha256(token)))
  await tx.delete(signinFailures).where(eq(signinFailures.subject, toTriesSubject(purpose, emailKey)))
  return { token, code }
}

/**
 * Counts a code that was entered for an address, and returns the hash of the token that it stands for, or undefined.
 * Tries are counted alike for addresses that nobody has, so that neither the answer nor its time tells them apart.
 */
export const findTokenByCode = (tenant: Tenant, purpose: CodePurpose, emailKey: string, code: string) =>
  tenant.write(async (tx): Promise<string | undefined> => {
    const { count: tries } = await tx
      .insert(signinFailures)
      .values({ subject: toTriesSubject(purpose, emailKey), count: 1, since: toIsoString(now()) })
      .onConflictDoUpdate({ target: signinFailures.subject, set: { count: sql`${signinFailures.count} + 1` } })
      .returning()
      .get()
    const isOpen = and(
      eq(oneTimeTokens.emailKey, emailKey),
      eq(oneTimeTokens.purpose, purpose),
      isNotNull(oneTimeTokens.code),
      gt(oneTimeTokens.codeExpires, toIsoString(now())),
    )
    const rows = await tx.select().from(oneTimeTokens).where(isOpen)
    return tries > MAX_CODE_TRIES ? undefined : rows.find((row) => isCode(row.code, code))?.hash
  })

const toTriesSubject = (purpose: CodePurpose, emailKey: string) => `code ${sha256(`${purpose}\n${emailKey}`)}`

/** Returns the row of a token that is valid for this purpose, or undefined. */
export const findOneTimeToken = (db: Db, purpose: TokenPurpose, token: string) =>
  findTokenByHash(db, purpose, sha256(token))

/** Like `findOneTimeToken`, by the hash of the token. */
export const findTokenByHash = (db: Db, purpose: TokenPurpose, hash: string) =>
  db.select().from(oneTimeTokens).where(isValidToken(purpose, hash)).get()

/**
 * Deletes a token that is valid for this purpose and returns its row, or undefined. Only one of several concurrent
 * callers gets it.
 */
export const consumeOneTimeToken = (tx: Tx, purpose: TokenPurpose, token: string) =>
  consumeTokenByHash(tx, purpose, sha256(token))

/** Like `consumeOneTimeToken`, by the hash of the token. */
export const consumeTokenByHash = (tx: Tx, purpose: TokenPurpose, hash: string) =>
  tx.delete(oneTimeTokens).where(isValidToken(purpose, hash)).returning().get()

/** Revokes all tokens of a user for a purpose. */
export const revokeOneTimeTokens = (tx: Tx, purpose: TokenPurpose, user: string) =>
  tx
    .delete(oneTimeTokens)
    .where(and(eq(oneTimeTokens.user, user), eq(oneTimeTokens.purpose, purpose)))
    .run()

const isValidToken = (purpose: TokenPurpose, hash: string) =>
  and(eq(oneTimeTokens.hash, hash), eq(oneTimeTokens.purpose, purpose), gt(oneTimeTokens.expires, toIsoString(now())))

/** Removes tokens that expired without being used, and counts of tries whose codes have expired. */
export async function removeExpired(tenant: Tenant & Lease) {
  await deleteInBatches(tenant, oneTimeTokens, oneTimeTokens.hash, lt(oneTimeTokens.expires, toIsoString(now())))
  const isOld = lt(signinFailures.since, toIsoString(now() - CODE_TTL_MS))
  await deleteInBatches(tenant, signinFailures, signinFailures.subject, isOld)
}
