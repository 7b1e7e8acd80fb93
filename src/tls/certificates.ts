import { and, asc, eq, gt, inArray, isNotNull, lte, or } from 'drizzle-orm'
import { config } from '../config'
import { toChunks } from '../core/chunks'
import { DAY_MS, HOUR_MS, now, toIsoString } from '../core/clock'
import { decrypt, encrypt } from '../core/encryption'
import { logError } from '../core/log'
import { notFound, Problem } from '../core/problem'
import { cached, writeInvalidating } from '../tenancy/cache'
import { deriveKey } from '../tenancy/installation-keys'
import { recordOperatorEvent } from '../tenancy/operator-events'
import { registry } from '../tenancy/registry'
import { certificates } from '../tenancy/tables'
import { listCertifiableHosts } from './certifiable-hosts'
import { getLoadedFiles } from './certificate-files'
import type { KeyPair } from './key-pair'
import type { Certificate } from './shapes'

const FIRST_RETRY_MS = 5 * 60_000
const RETRY_FACTOR = 4
const MAX_RETRY_MS = DAY_MS
const RETRIES_PER_LIFETIME = 24 // at least, so that a certificate of six days gets eight attempts before it expires
const ROWS_PER_WRITE = 200
const MAX_PROBLEM_LENGTH = 500

type CertificateRow = typeof certificates.$inferSelect
/** A certificate of one host, as it is served. */
export type HostCertificate = Pick<KeyPair, 'chain' | 'key'> & { host: string }

/** Encrypts a private key, so that the database alone does not reveal it. */
export const sealKey = async (owner: string, key: string) =>
  encrypt(await deriveKey('registry', 'certificates'), key, owner).toString('base64')

/**
 * Returns the private key, or undefined when it was encrypted with other keys than the installation has now.
 * @throws 503 KEYS_UNAVAILABLE
 */
export async function openKey(owner: string, sealed: string): Promise<string | undefined> {
  const key = await deriveKey('registry', 'certificates')
  try {
    return decrypt(key, Buffer.from(sealed, 'base64'), owner)
  } catch {
    // A key cannot be restored, so another one takes its place.
  }
}

/** Returns the issued certificates of the hosts that may have one. */
export const listIssuedCertificates = async (): Promise<HostCertificate[]> =>
  cached(registry, 'certificates', 'issued', async () => {
    const certifiable = await listCertifiableHosts()
    const rows = await registry.db.select().from(certificates).where(isNotNull(certificates.chain))
    const found = await Promise.all(rows.filter(({ host }) => certifiable.has(host)).map(openRow))
    return found.filter((certificate) => certificate !== undefined)
  })

async function openRow({ host, chain, key }: CertificateRow): Promise<HostCertificate | undefined> {
  const opened = await openKey(host, key ?? '')
  if (opened !== undefined) return { host, chain: chain ?? '', key: opened }
  logError('CERTIFICATE_UNREADABLE', { host, message: 'Another certificate will be ordered.' })
  await orderNow(host)
}

/** Adds the hosts that have no row yet, and removes what expired of hosts that are not served any more. */
export async function syncCertificates() {
  const certifiable = await listCertifiableHosts()
  const known = await registry.db.select({ host: certificates.host, expires: certificates.expires }).from(certificates)
  const knownHosts = new Set(known.map(({ host }) => host))
  const [time, due] = [now(), toIsoString(now())]
  const added = [...certifiable.keys()].filter((host) => !knownHosts.has(host))
  for (const chunk of toChunks(added, ROWS_PER_WRITE))
    await registry.write((tx) =>
      tx
        .insert(certificates)
        .values(chunk.map((host) => ({ host, due, failures: 0 })))
        .onConflictDoNothing(),
    )
  const isOver = ({ host, expires }: (typeof known)[number]) =>
    !certifiable.has(host) && (expires === null || Date.parse(expires) < time)
  const removed = known.filter(isOver).map(({ host }) => host)
  for (const chunk of toChunks(removed, ROWS_PER_WRITE))
    await registry.write((tx) => tx.delete(certificates).where(inArray(certificates.host, chunk)))
}

/** Returns the hosts whose certificates are to be ordered now, those that failed last. */
export async function listDueHosts(): Promise<CertificateRow[]> {
  const certifiable = await listCertifiableHosts()
  const rows = await registry.db
    .select()
    .from(certificates)
    .where(
      or(
        lte(certificates.due, toIsoString(now())),
        // A retry that is later than any delay was planned while the clock was ahead.
        and(gt(certificates.failures, 0), gt(certificates.due, toIsoString(now() + MAX_RETRY_MS))),
      ),
    )
    .orderBy(asc(certificates.failures), asc(certificates.due))
  return rows.filter(({ host }) => certifiable.has(host))
}

/** Returns the hosts for which a certificate was ordered within an hour. */
export async function listRecentlyOrderedHosts(): Promise<string[]> {
  const isRecent = and(
    gt(certificates.attempted, toIsoString(now() - HOUR_MS)),
    lte(certificates.attempted, toIsoString(now() + HOUR_MS)), // later ones date from a clock that was ahead
  )
  const rows = await registry.db.select({ host: certificates.host }).from(certificates).where(isRecent)
  return rows.map(({ host }) => host)
}

/** Stores an issued certificate. It is renewed when a third of its lifetime is left. */
export async function saveCertificate(host: string, { chain, key, issuer, issued, expires }: KeyPair) {
  const sealed = await sealKey(host, key)
  const tenant = (await listCertifiableHosts()).get(host) ?? ''
  const due = toIsoString(Math.floor(expires - (expires - issued) / 3))
  const times = { issued: toIsoString(issued), expires: toIsoString(expires), due, attempted: toIsoString(now()) }
  await writeInvalidating(registry, 'certificates', async (tx) => {
    const row = { chain, key: sealed, issuer, ...times, failures: 0, problem: null }
    await tx.update(certificates).set(row).where(eq(certificates.host, host))
    await recordOperatorEvent(tx, 'certificate-issued', tenant, { host, issuer, expires: times.expires })
  })
}

/**
 * Records why a host got no certificate. Each further attempt waits longer, up to a day, or a part of how long the
 * certificate before is valid.
 */
export async function recordFailure(row: CertificateRow, message: string, wasOrdered: boolean) {
  const { host, failures } = row
  const tenant = (await listCertifiableHosts()).get(host) ?? ''
  const wait = Math.min(longestRetry(row), FIRST_RETRY_MS * RETRY_FACTOR ** Math.min(failures, 10))
  const problem = message.slice(0, MAX_PROBLEM_LENGTH)
  const time = now()
  const changes = { due: toIsoString(time + wait), failures: failures + 1, problem }
  await registry.write(async (tx) => {
    const attempted = wasOrdered ? { attempted: toIsoString(time) } : {}
    await tx
      .update(certificates)
      .set({ ...changes, ...attempted })
      .where(eq(certificates.host, host))
    if (!failures) await recordOperatorEvent(tx, 'certificate-failed', tenant, { host, problem })
  })
}

function longestRetry({ issued, expires }: CertificateRow) {
  const lifetime = issued && expires ? Date.parse(expires) - Date.parse(issued) : Number.POSITIVE_INFINITY
  return Math.floor(Math.min(MAX_RETRY_MS, lifetime / RETRIES_PER_LIFETIME))
}

/** Returns the hosts whose certificates are in force, as they were issued, and whose renewal is planned. */
export async function listIssuedRows(): Promise<(CertificateRow & { chain: string })[]> {
  const certifiable = await listCertifiableHosts()
  const isPlanned = and(isNotNull(certificates.chain), eq(certificates.failures, 0))
  const rows = await registry.db
    .select()
    .from(certificates)
    .where(and(isPlanned, gt(certificates.due, toIsoString(now()))))
  return rows.filter((row): row is CertificateRow & { chain: string } => certifiable.has(row.host))
}

/** Plans another moment (ms) for the renewal of a certificate, unless it was ordered meanwhile. */
export const planRenewal = ({ host, due }: CertificateRow, time: number) =>
  registry.write((tx) =>
    tx
      .update(certificates)
      .set({ due: toIsoString(time) })
      .where(and(eq(certificates.host, host), eq(certificates.due, due))),
  )

/** Records that the authority takes no orders now, which is no fault of the host. */
export const postpone = ({ host }: CertificateRow, message: string, wait: number) =>
  registry.write((tx) =>
    tx
      .update(certificates)
      .set({ due: toIsoString(now() + wait), problem: message.slice(0, MAX_PROBLEM_LENGTH) })
      .where(eq(certificates.host, host)),
  )

const orderNow = (host: string) =>
  registry.write((tx) =>
    tx
      .update(certificates)
      .set({ due: toIsoString(now()) })
      .where(eq(certificates.host, host))
      .returning({ host: certificates.host }),
  )

/**
 * Orders the certificate of a host within half a minute, whatever has failed before.
 * @throws 404 CERTIFICATE_NOT_FOUND, 409 ACME_OFF
 */
export async function renew(name: string): Promise<Certificate> {
  const host = name.toLowerCase()
  if (config.ATOLL_ACME === 'off')
    throw new Problem(409, 'ACME_OFF', 'Certificates are ordered only with the setting ATOLL_ACME=on.')
  const certifiable = await listCertifiableHosts()
  if (!certifiable.has(host)) notFound('certificate')
  await syncCertificates()
  await orderNow(host)
  const row = await registry.db.select().from(certificates).where(eq(certificates.host, host)).get()
  return row ? describe(row, certifiable.get(host)) : notFound('certificate')
}

/** Returns all certificates: those of files, and those that are ordered, the ones with problems first. */
export async function list(): Promise<Certificate[]> {
  const { pairs, problem } = getLoadedFiles()
  const files = pairs.flatMap((pair) => pair.hosts.map((host) => describeFile(host, pair, problem)))
  if (config.ATOLL_ACME === 'off') return files
  const certifiable = await listCertifiableHosts()
  const rows = await registry.db.select().from(certificates).orderBy(asc(certificates.host))
  const ordered = rows
    .filter(({ host }) => certifiable.has(host))
    .map((row) => describe(row, certifiable.get(row.host)))
  return [...files, ...ordered].sort((one, other) => Number(!one.problem) - Number(!other.problem))
}

function describe(row: CertificateRow, tenant = ''): Certificate {
  const { host, issuer, issued, expires, due, attempted, failures, problem } = row
  const isExpired = expires !== null && Date.parse(expires) <= now()
  const state = problem ? 'failing' : expires === null || isExpired ? 'pending' : 'issued'
  const times = { issued, expires, attempted, next: due }
  return { host, tenant: tenant || null, source: 'acme', state, issuer, ...times, failures, problem }
}

const describeFile = (host: string, { issuer, issued, expires }: KeyPair, problem?: string): Certificate => ({
  ...{ host, tenant: null, source: 'file', state: problem ? 'failing' : 'issued', issuer },
  ...{ issued: toIsoString(issued), expires: toIsoString(expires), attempted: null, next: null },
  ...{ failures: 0, problem: problem ?? null },
})
