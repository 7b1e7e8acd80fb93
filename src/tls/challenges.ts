import { eq, lt } from 'drizzle-orm'
import { config } from '../config'
import { HOUR_MS, now, toIsoString } from '../core/clock'
import { registry } from '../tenancy/registry'
import { acmeChallenges } from '../tenancy/tables'

const CHALLENGE_PATH = '/.well-known/acme-challenge/' // RFC 8555 §8.3
const CHALLENGE_TTL_MS = HOUR_MS

/** Stores what any server answers to a challenge, and removes old ones. */
export const saveChallenge = (token: string, answer: string) =>
  registry.write(async (tx) => {
    const time = now()
    await tx.delete(acmeChallenges).where(lt(acmeChallenges.created, toIsoString(time - CHALLENGE_TTL_MS)))
    const row = { answer, created: toIsoString(time) }
    await tx
      .insert(acmeChallenges)
      .values({ token, ...row })
      .onConflictDoUpdate({ target: acmeChallenges.token, set: row })
  })

/** Removes a challenge that was checked. */
export const removeChallenge = (token: string) =>
  registry.write((tx) => tx.delete(acmeChallenges).where(eq(acmeChallenges.token, token)))

/** Tells whether a request comes from an ACME authority that checks a host. */
export const isChallenge = ({ url }: Request) =>
  config.ATOLL_ACME === 'on' && url.includes(CHALLENGE_PATH) && tokenPathOf(url).startsWith(CHALLENGE_PATH)

const tokenPathOf = (url: string) => URL.parse(url, 'http://any.invalid')?.pathname ?? ''

/** Answers an ACME authority. The challenge may be that of another server. */
export async function answerChallenge({ url }: Request): Promise<Response> {
  const token = tokenPathOf(url).slice(CHALLENGE_PATH.length)
  const isToken = /^[\w-]{1,200}$/.test(token)
  const row = isToken
    ? await registry.db.select().from(acmeChallenges).where(eq(acmeChallenges.token, token)).get()
    : undefined
  const headers = { 'content-type': 'application/octet-stream', 'cache-control': 'no-store' }
  return row ? new Response(row.answer, { headers }) : new Response('There is no such challenge.', { status: 404 })
}
