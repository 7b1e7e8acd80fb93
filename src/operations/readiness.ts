import { statfs } from 'node:fs/promises'
import { Elysia, t } from 'elysia'
import { config } from '../config'
import { now } from '../core/clock'
import { Problem, ProblemShape, summarizeErrors } from '../core/problem'
import type { Store } from '../storage/port'
import { findSecretsProblem } from '../tenancy/installation-keys'
import { forgetStorageFailure, listStorageFailuresSince } from '../tenancy/placement'
import { registry } from '../tenancy/registry'
import { findLocalFilesRisk } from '../tenancy/servers'
import { getTenantAnyStatus } from '../tenancy/tenants'
import { findDescriptorRisk } from './file-descriptors'

const CHECK_TIMEOUT_MS = 3_000
const CHECK_INTERVAL_MS = 1_000 // whoever asks more often gets the same answer
const RECENT_FAILURE_MS = 10_000
const MAX_RETRIED = 20 // tenants whose storage failed, at each check

let isStopping = false
let latest: { at: number; flaws: Promise<string[]> } | undefined

/** From now on the server is not ready, because it stops. */
export function endReadiness() {
  isStopping = true
}

/**
 * Checks what a server needs to serve tenants: that the registry can be written, the disk has room, and the keys can be
 * read.
 * @throws 503 NOT_READY with what is wrong
 */
async function requireReadiness() {
  const flaws = isStopping ? ['The server is stopping.'] : await listFlaws()
  if (!flaws.length) {
    const risks = [await findLocalFilesRisk().catch(() => undefined), findDescriptorRisk()]
    const warnings = risks.filter((risk) => risk !== undefined)
    return { status: 'ready' as const, ...(warnings.length && { warnings }) }
  }
  const details = flaws.map((message) => ({ path: '', message }))
  throw new Problem(503, 'NOT_READY', summarizeErrors(details), { details, headers: { 'retry-after': '5' } })
}

function listFlaws(): Promise<string[]> {
  if (!latest || performance.now() - latest.at > CHECK_INTERVAL_MS)
    latest = { at: performance.now(), flaws: findFlaws() }
  return latest.flaws
}

async function findFlaws(): Promise<string[]> {
  const flaws = await Promise.all([
    withTimeout(checkRegistry(), 'The registry of tenants does not answer.'),
    withTimeout(checkKeys(), 'The keys of the server cannot be read in time.'),
    withTimeout(checkDisk(), 'The disk of the data folder does not answer.'),
    withTimeout(checkTenants(), 'The storage of a tenant does not answer.'),
  ])
  return flaws.filter((flaw) => flaw !== undefined)
}

/** A write that reaches the disk. Nothing reads what it writes. */
const touch = ({ write }: Pick<Store, 'write'>) =>
  write((tx) =>
    tx.query(
      `insert into versions (topic, version) values ('ready', 0)
       on conflict ("topic") do update set version = 1 - versions.version`,
    ),
  )

const checkRegistry = () =>
  touch(registry).then(
    () => undefined,
    () => 'The registry of tenants cannot be written.',
  )

/** The public answer does not say where the keys are. */
const checkKeys = () =>
  findSecretsProblem().then(
    (flaw) => flaw && 'The keys of the server cannot be used. "atoll doctor" says why.',
    () => 'The keys of the server cannot be read.',
  )

async function checkDisk() {
  // With PostgreSQL there may be no folder.
  const stats = await statfs(config.ATOLL_TENANTS).catch(() => undefined)
  if (!stats) return config.ATOLL_DATABASE_URL ? undefined : 'The data folder cannot be read.'
  if (stats.bavail * stats.bsize < config.ATOLL_MIN_FREE)
    return 'The disk of the data folder is almost full. Make room, or lower ATOLL_MIN_FREE.'
}

/** A tenant whose database takes a write again has recovered. */
async function checkTenants() {
  const failures = listStorageFailuresSince(now() - RECENT_FAILURE_MS)
  await Promise.all(
    failures.slice(0, MAX_RETRIED).map(async (id) => {
      const tenant = await getTenantAnyStatus(id)
      await touch(tenant)
      forgetStorageFailure(id)
    }),
  ).catch(() => {}) // it still fails
  const failed = listStorageFailuresSince(now() - RECENT_FAILURE_MS).length
  if (failed)
    return `The storage of ${failed === 1 ? 'a tenant' : `${failed} tenants`} has failed and is being reopened.`
}

const withTimeout = (check: Promise<string | undefined>, flaw: string) =>
  Promise.race([check, Bun.sleep(CHECK_TIMEOUT_MS).then(() => flaw)])

/** The readiness check for load balancers. It is outside `/api`, because it concerns no tenant. */
export const readinessRoutes = new Elysia({ tags: ['operations'] }).get('/ready', requireReadiness, {
  detail: {
    ...{ 'x-access': 'open', operationId: 'checkReadiness', summary: 'Check whether the server can serve tenants' },
    description: 'Do not route requests to a server that is not ready. The details list the problems.',
  } as object,
  response: {
    200: t.Object({
      status: t.Literal('ready'),
      warnings: t.Optional(
        t.Array(t.String(), { description: 'features that work only on this server, or only for now' }),
      ),
    }),
    503: ProblemShape,
  },
})
