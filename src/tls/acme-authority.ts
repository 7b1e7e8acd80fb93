import { readFile } from 'node:fs/promises'
import { eq } from 'drizzle-orm'
import { config } from '../config'
import { HOUR_MS, now, toIsoString } from '../core/clock'
import { FAILURE_MESSAGES, fetchExternal, UpstreamUnreachable } from '../core/http-client'
import { parseRetryAfter } from '../core/retry-after'
import { registry } from '../tenancy/registry'
import { acmeAccounts } from '../tenancy/tables'
import { openKey, sealKey } from './certificates'
import { removeChallenge, saveChallenge } from './challenges'
import { type KeyPair, parseKeyPair } from './key-pair'

type AcmeLibrary = typeof import('acme-client')
type AcmeClient = InstanceType<AcmeLibrary['Client']>
type SentRequest = { url?: string; method?: string; headers: object; data?: string }

const REQUEST_TIMEOUT_MS = 30_000
const MAX_RESPONSE_BYTES = 1 << 20
const POLLING = { backoffAttempts: 12, backoffMin: 1_000, backoffMax: 15_000 } // while the authority checks a host
const RATE_LIMIT_PAUSE_MS = HOUR_MS // unless the authority says how long
const OUTAGE_PAUSE_MS = 5 * 60_000
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
  const ca = await readAuthorityFile()
  const limits = { tenant: CALLER, timeout: REQUEST_TIMEOUT_MS, limit: MAX_RESPONSE_BYTES, privateNetwork: true, ca }
  const init = { method, headers: sentHeaders, body: data ?? null }
  const response = await fetchExternal(url, init, limits).catch(explainUnreachable)
  const { status } = response
  if (status === 429)
    throw new AuthorityUnavailable('The ACME authority limits orders.', readRetryAfter(response, RATE_LIMIT_PAUSE_MS))
  if (status >= 500)
    throw new AuthorityUnavailable(
      `The ACME authority fails with status ${status}.`,
      readRetryAfter(response, OUTAGE_PAUSE_MS),
    )
  const text = await response.text()
  if (text.includes(ACCOUNT_GONE)) await forgetAccount()
  return {
    ...{ status, statusText: '', headers: Object.fromEntries(response.headers) },
    ...{ data: text, config: request, request: null },
  }
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
  const directoryUrl = config.ATOLL_ACME_DIRECTORY
  const name = toAccountName()
  const account = await registry.db.select().from(acmeAccounts).where(eq(acmeAccounts.directory, name)).get()
  if (account) {
    const accountKey = await openKey(name, account.key)
    if (accountKey) return new acme.Client({ directoryUrl, accountKey, accountUrl: account.url, ...POLLING })
  }
  const accountKey = await acme.crypto.createPrivateEcdsaKey()
  const [kid, hmacKey] = [config.ATOLL_ACME_EAB_KEY_ID, config.ATOLL_ACME_EAB_HMAC_KEY]
  const externalAccountBinding = kid ? { kid, hmacKey } : undefined
  const client = new acme.Client({ directoryUrl, accountKey, externalAccountBinding, ...POLLING })
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
 * Orders a certificate of one host, and proves by HTTP-01 that the host leads here.
 * @throws AuthorityUnavailable, or an error whose message is the reason of the authority
 */
export async function orderCertificate(client: AcmeClient, host: string): Promise<KeyPair> {
  const acme = await loadLibrary()
  const order = await client.createOrder({ identifiers: [{ type: 'dns', value: host }] })
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
