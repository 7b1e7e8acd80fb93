import { readFile } from 'node:fs/promises'
import { eq } from 'drizzle-orm'
import { config } from '../config'
import { HOUR_MS, now, toIsoString } from '../core/clock'
import { FAILURE_MESSAGES, fetchExternal, UpstreamUnreachable } from '../core/http-client'
import { tryParseJson } from '../core/json'
import { parseRetryAfter } from '../core/retry-after'
import { registry } from '../tenancy/registry'
import { acmeAccounts } from '../tenancy/tables'
import { openKey, sealKey } from './certificates'
import { removeChallenge, saveChallenge } from './challenges'
import { type KeyPair, parseKeyPair } from './key-pair'
import { toRenewalId } from './renewal-id'

type AcmeLibrary = typeof import('acme-client')
type AcmeClient = InstanceType<AcmeLibrary['Client']>
type SentRequest = { url?: string; method?: string; headers: object; data?: string }

const REQUEST_TIMEOUT_MS = 30_000
const MAX_RESPONSE_BYTES = 1 << 20
const POLLING = { backoffAttempts: 12, backoffMin: 1_000, backoffMax: 15_000 } // while the authority checks a host
const RATE_LIMIT_PAUSE_MS = HOUR_MS // unless the authority says how long
const OUTAGE_PAUSE_MS = 5 * 60_000
const MAX_REFUSED_NONCES = 30
const RENEWAL_INFO_INTERVAL_MS = 6 * HOUR_MS // unless the authority says how long
const DEFAULT_PROFILE = 'classic'
const ACCOUNT_GONE = 'urn:ietf:params:acme:error:accountDoesNotExist'
// No tenant can have this name, so no tenant's calls delay these.
const CALLER = '.acme'

/** The authority takes no orders for some time, whatever the host. */
export class AuthorityUnavailable extends Error {
  constructor(
    message: string,
    readonly retryAfterMs: number,
  ) {
    super(`${message} Orders go on later.`)
  }
}

let library: Promise<AcmeLibrary> | undefined

/** Loads the library when it is first needed, and lets its requests go through our HTTP client. */
function loadLibrary(): Promise<AcmeLibrary> {
  library ??= import('acme-client').then((acme) => {
    acme.axios.defaults.adapter = send as never
    return acme
  })
  return library
}

/** Sends a request of the library. Its own repetitions are not used, because orders are repeated as a whole. */
async function send(request: SentRequest) {
  const { url = '', method = 'get', headers, data } = request
  const sentHeaders = Object.entries({ ...headers }).map(([name, value]) => [name, String(value)] as [string, string])
  const response = await fetchAuthority(url, { method, headers: sentHeaders, body: data ?? null })
  const text = await response.text()
  if (text.includes(ACCOUNT_GONE)) await forgetAccount()
  return {
    ...{ status: response.status, statusText: '', headers: Object.fromEntries(response.headers) },
    ...{ data: text, config: request, request: null },
  }
}

/** @throws AuthorityUnavailable */
async function fetchAuthority(url: string, init: Parameters<typeof fetchExternal>[1]): Promise<Response> {
  const ca = await readAuthorityFile()
  const limits = { tenant: CALLER, timeout: REQUEST_TIMEOUT_MS, limit: MAX_RESPONSE_BYTES, privateNetwork: true, ca }
  const response = await fetchExternal(url, init, limits).catch(explainUnreachable)
  const { status } = response
  if (status === 429)
    throw new AuthorityUnavailable('The ACME authority limits orders.', readRetryAfter(response, RATE_LIMIT_PAUSE_MS))
  if (status >= 500)
    throw new AuthorityUnavailable(
      `The ACME authority fails with status ${status}.`,
      readRetryAfter(response, OUTAGE_PAUSE_MS),
    )
  return response
}

/** Returns the certificates of a private authority, or undefined for a public one. */
async function readAuthorityFile() {
  const file = config.ATOLL_ACME_CA
  if (!file) return
  return readFile(file, 'utf8').catch((cause) => {
    const reason = (cause as { code?: string }).code
    throw new AuthorityUnavailable(`"${file}" of ATOLL_ACME_CA cannot be read: ${reason}.`, OUTAGE_PAUSE_MS)
  })
}

function explainUnreachable(cause: unknown): never {
  if (!(cause instanceof UpstreamUnreachable)) throw cause
  const reason = FAILURE_MESSAGES[cause.reason]
  throw new AuthorityUnavailable(`The ACME authority cannot be reached. ${reason}`, OUTAGE_PAUSE_MS)
}

const readRetryAfter = ({ headers }: Response, fallback: number) =>
  parseRetryAfter(headers.get('retry-after')) || fallback

/** Returns the name of the installation's account: another external account stands for another one. */
const toAccountName = () => [config.ATOLL_ACME_DIRECTORY, config.ATOLL_ACME_EAB_KEY_ID].filter(Boolean).join(' ')

/** The next order creates another account. */
const forgetAccount = () =>
  registry.write((tx) => tx.delete(acmeAccounts).where(eq(acmeAccounts.directory, toAccountName())))

/**
 * Returns a client with the installation's account, which is created at the first order.
 * @throws AuthorityUnavailable, also when the authority refuses the account
 */
export async function connectAuthority(): Promise<AcmeClient> {
  const acme = await loadLibrary()
  const name = toAccountName()
  const account = await registry.db.select().from(acmeAccounts).where(eq(acmeAccounts.directory, name)).get()
  if (account) {
    const accountKey = await openKey(name, account.key)
    if (accountKey) return createClient(acme, { accountKey, accountUrl: account.url })
  }
  const accountKey = await acme.crypto.createPrivateEcdsaKey()
  const [kid, hmacKey] = [config.ATOLL_ACME_EAB_KEY_ID, config.ATOLL_ACME_EAB_HMAC_KEY]
  const externalAccountBinding = kid ? { kid, hmacKey } : undefined
  const client = createClient(acme, { accountKey, externalAccountBinding })
  const email = config.ATOLL_ACME_EMAIL
  await client
    .createAccount({ termsOfServiceAgreed: true, ...(email && { contact: [`mailto:${email}`] }) })
    .catch(explainRefusedAccount)
  const key = await sealKey(name, accountKey.toString())
  const row = { url: client.getAccountUrl(), key, created: toIsoString(now()) }
  await registry.write((tx) =>
    tx
      .insert(acmeAccounts)
      .values({ directory: name, ...row })
      .onConflictDoUpdate({ target: acmeAccounts.directory, set: row }),
  )
  return client
}

type ClientOptions = Omit<ConstructorParameters<AcmeLibrary['Client']>[0], 'directoryUrl'>

function createClient(acme: AcmeLibrary, options: ClientOptions): AcmeClient {
  const client = new acme.Client({ directoryUrl: config.ATOLL_ACME_DIRECTORY, ...POLLING, ...options })
  // The library gives up after five refused nonces in a row, which authorities with several servers produce.
  Object.assign((client as unknown as { http: object }).http, { maxBadNonceRetries: MAX_REFUSED_NONCES })
  return client
}

/** No host is to blame, so nothing is ordered for some time. */
function explainRefusedAccount(error: Error): never {
  if (error instanceof AuthorityUnavailable) throw error
  const reason = `The ACME authority refuses the account: ${error.message.replace(/\.$/, '')}.`
  const advice = config.ATOLL_ACME_EAB_KEY_ID
    ? 'Check ATOLL_ACME_EAB_KEY_ID and ATOLL_ACME_EAB_HMAC_KEY.'
    : 'If you have an account there, set its ATOLL_ACME_EAB_KEY_ID and ATOLL_ACME_EAB_HMAC_KEY.'
  throw new AuthorityUnavailable(`${reason} ${advice}`, OUTAGE_PAUSE_MS)
}

/**
 * Orders a certificate of one host, and proves by HTTP-01 that the host leads here. `before` is the certificate that it
 * replaces.
 * @throws AuthorityUnavailable, or an error whose message is the reason of the authority
 */
export async function orderCertificate(client: AcmeClient, host: string, before?: string | null): Promise<KeyPair> {
  const acme = await loadLibrary()
  const order = await createOrder(client, host, before)
  for (const authorization of await client.getAuthorizations(order)) {
    if (authorization.status === 'valid') continue
    const challenge = authorization.challenges.find(({ type }) => type === 'http-01')
    if (!challenge) throw new Error('The ACME authority offers no check by HTTP for this host.')
    await saveChallenge(challenge.token, await client.getChallengeKeyAuthorization(challenge))
    try {
      await client.completeChallenge(challenge)
      await client.waitForValidStatus(challenge)
    } finally {
      await removeChallenge(challenge.token)
    }
  }
  const [key, request] = await acme.crypto.createCsr({ altNames: [host] }, await acme.crypto.createPrivateEcdsaKey())
  const finalized = await client.finalizeOrder(order, request)
  return parseKeyPair(await client.getCertificate(finalized), key.toString())
}

async function createOrder(client: AcmeClient, host: string, before?: string | null) {
  const { profile, renewalInfo } = await readDirectory()
  const order = { identifiers: [{ type: 'dns' as const, value: host }], ...(profile && { profile }) }
  const replaces = renewalInfo && before ? toRenewalId(before) : undefined
  if (!replaces) return client.createOrder(order)
  return client.createOrder({ ...order, replaces } as typeof order).catch((error) => {
    // It was replaced already, or another authority has issued it.
    if (error instanceof AuthorityUnavailable) throw error
    return client.createOrder(order)
  })
}

/** The profile to order, and where renewal is suggested, as far as the authority has them. */
type AuthorityDirectory = { profile?: string; renewalInfo?: string }

/** @throws AuthorityUnavailable also for a profile that it does not have */
async function readDirectory(): Promise<AuthorityDirectory> {
  const response = await fetchAuthority(config.ATOLL_ACME_DIRECTORY, { method: 'GET' })
  if (!response.ok)
    throw new AuthorityUnavailable(
      `The ACME authority answers ${response.status} for its directory. Check ATOLL_ACME_DIRECTORY.`,
      OUTAGE_PAUSE_MS,
    )
  const { meta, renewalInfo } = (tryParseJson(await response.text()) ?? {}) as {
    meta?: { profiles?: Record<string, unknown> }
    renewalInfo?: string
  }
  const profiles = Object.keys(meta?.profiles ?? {})
  const chosen = config.ATOLL_ACME_PROFILE
  if (chosen && !profiles.includes(chosen))
    throw new AuthorityUnavailable(
      `The ACME authority has no profile "${chosen}". ${profiles.length ? `Set ATOLL_ACME_PROFILE to one of these: ${profiles.join(', ')}.` : 'Remove ATOLL_ACME_PROFILE.'}`,
      OUTAGE_PAUSE_MS,
    )
  return { profile: chosen || profiles.find((name) => name === DEFAULT_PROFILE), renewalInfo }
}

/** When the authority suggests to renew a certificate, and when to ask again (ms). */
export type SuggestedRenewal = { start: number; end: number; askAgain: number }

/** Returns what the authority suggests, or undefined where it suggests nothing. @throws AuthorityUnavailable */
export async function readSuggestedRenewal(chain: string): Promise<SuggestedRenewal | undefined> {
  const [{ renewalInfo }, id] = [await readDirectory(), toRenewalId(chain)]
  if (!renewalInfo || !id) return
  const response = await fetchAuthority(`${renewalInfo.replace(/\/$/, '')}/${id}`, { method: 'GET' })
  const body = tryParseJson(await response.text()) as { suggestedWindow?: { start?: string; end?: string } } | undefined
  const [start, end] = [Date.parse(body?.suggestedWindow?.start ?? ''), Date.parse(body?.suggestedWindow?.end ?? '')]
  if (!response.ok || !(start < end)) return
  return { start, end, askAgain: readRetryAfter(response, RENEWAL_INFO_INTERVAL_MS) }
}
