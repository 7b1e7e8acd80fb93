import { Command } from 'commander'
import type { Warning } from '../blueprints/shapes'
import { config } from '../config'
import { DAY_MS, now, toIsoString } from '../core/clock'
import { getErrorChain } from '../core/log'
import { Problem } from '../core/problem'
import { describeTimeZones } from '../core/time-zone'
import { findMissingContents } from '../files/missing-contents'
import { checkOperatorPage } from '../operations/admin/page-host'
import { checkCertificates } from '../operations/certificate-checks'
import {
  type Check,
  checkBackups,
  checkDataFolder,
  checkDefaultTenant,
  checkSecrets,
  checkServers,
  checkUnknownFolders,
  hasRegistry,
  listSettings,
} from '../operations/checks'
import { areIndexFlaws, repairInstallation } from '../operations/repairs'
import { checkStores } from '../operations/store-checks'
import { listDataFolders } from '../tenancy/adoption'
import { findDataFolderRisk, maxOpenTenants } from '../tenancy/databases'
import { checkRegistry } from '../tenancy/registry'
import { listTenants } from '../tenancy/tenant-list'
import { checkTenantDatabase, getTenantAnyStatus, migrateTenant } from '../tenancy/tenants'
import { UNTRUSTED_PROXY_HINT, untrustedProxySeenAt } from '../tenancy/untrusted-proxy'
import { describeMissingFiles, formatTable, runAndPrint } from './output'
import { listTenantWarnings } from './warnings'

/** Lists every setting with its source, and checks whether this installation can work. */
export const doctor = new Command('doctor')
  .description('Check the installation and list all settings')
  .option('--deep', 'also read every database in full (slow)')
  .option('--fix', 'repair what can be repaired without data loss; with --deep, also indexes')
  .option('--json', 'print JSON')
  .action(
    runAndPrint(
      async ({ deep = false, fix = false }: { deep?: boolean; fix?: boolean }, _command: Command) => {
        const repairs = fix && hasRegistry() ? await repairInstallation(deep) : []
        const checks = [
          checkDataFolder(),
          ...(hasRegistry() ? await checkWithRegistry(deep) : await checkWithoutRegistry()),
        ]
        if (checks.some(({ ok }) => !ok)) process.exitCode = 1
        return {
          settings: listSettings(),
          openTenants: maxOpenTenants,
          timeZones: describeTimeZones(),
          repairs,
          checks,
          warnings: await listWarnings(hasRegistry()),
        }
      },
      ({ settings, openTenants, timeZones, repairs, checks, warnings }) =>
        [
          formatTable(settings.map(({ name, value, source, description }) => [name, value, source, description])),
          `At most ${openTenants} tenants stay open at a time.`,
          `Time zones follow the IANA database ${timeZones.version} (${timeZones.source}).`,
          ...repairs.map(({ check, message }) => `MENDED  ${check}: ${message}`),
          ...checks.map(({ check, ok, message }) => `${ok ? 'ok     ' : 'PROBLEM'} ${check}: ${message}`),
          ...warnings.map(
            ({ tenant, path, message }) => `WARNING ${tenant ? `tenant ${tenant} ` : ''}${path}: ${message}`,
          ),
        ].join('\n\n'),
    ),
  )

/** Checks tenants one after the other: there may be more of them than files may be open. */
async function checkTenants(deep: boolean): Promise<Check[]> {
  const checks: Check[] = []
  for (const { id, status } of await listTenants()) {
    const flaw = await findTenantDamage(id, deep)
    const message = `${status}, database opens and is up to date${deep ? ' and fully readable' : ''}`
    checks.push({ check: `tenant ${id}`, ok: !flaw, message: flaw ?? message })
  }
  return checks
}

async function findTenantDamage(id: string, deep: boolean): Promise<string | undefined> {
  try {
    await migrateTenant(id)
    const flaws = deep ? await checkTenantDatabase(id, true) : []
    if (flaws.length) return `${flaws.join(' ')} ${hintFor(flaws, id)}`
    return deep ? await describeMissingContents(id) : undefined
  } catch (error) {
    const isDamaged = error instanceof Problem && error.code === 'TENANT_DAMAGED'
    return isDamaged ? `${(getErrorChain(error)[1] as Error).message} ${repairHint(id)}` : String(error)
  }
}

async function describeMissingContents(id: string): Promise<string | undefined> {
  await import('../app') // the areas name contents
  const missing = await findMissingContents(await getTenantAnyStatus(id))
  if (missing.length)
    return `${describeMissingFiles({ missing }).trim()} Upload the files again, redeploy the site, or restore a backup.`
}

const hintFor = (flaws: string[], id: string) =>
  areIndexFlaws(flaws) ? 'Run "atoll doctor --deep --fix" to rebuild its indexes.' : repairHint(id)

const repairHint = (id: string) => `Restore it from a backup, or delete the tenant with "atoll tenant delete ${id}".`

/** Checks an installation before its first start, or one whose registry is lost while the folders remain. */
async function checkWithoutRegistry(): Promise<Check[]> {
  const lost = listDataFolders().map((name) => ({
    check: `folder ${name}`,
    ok: false,
    message: `not in a registry; import it with "atoll tenant adopt ${name}"`,
  }))
  return [await checkSecrets(), ...lost]
}

/** Runs the checks that need a readable registry. */
async function checkWithRegistry(deep: boolean): Promise<Check[]> {
  const check = 'registry'
  try {
    await listTenants()
  } catch (error) {
    const reason = getErrorChain(error).at(-1)
    const message = `cannot be read: ${reason instanceof Error ? reason.message : reason}. Restore it from a backup.`
    return [{ check, ok: false, message }]
  }
  const flaws = deep ? await checkRegistry() : []
  const own: Check = { check, ok: !flaws.length, message: flaws.length ? flaws.join(' ') : 'readable' }
  return [
    own,
    await checkSecrets(),
    ...(await checkCertificates()),
    ...(await checkDefaultTenant()),
    ...(await checkOperatorPage()),
    ...(await checkUnknownFolders()),
    ...(await checkServers()),
    await checkBackups(),
    ...(await checkStores()),
    ...(await checkTenants(deep)),
  ]
}

/**
 * Returns warnings about what works, but probably not as intended. Tenants whose database does not open are reported as
 * problems instead.
 */
async function listWarnings(anyData: boolean) {
  const found: ({ tenant?: string } & Warning)[] = [...proxyWarnings(), ...fileSystemWarnings(), ...fileStoreWarnings()]
  for (const { id } of anyData ? await listTenants().catch(() => []) : [])
    found.push(...(await listTenantWarnings(id).catch(() => [])).map((warning) => ({ tenant: id, ...warning })))
  return found
}

/** Servers do not know of each other, only that they could share the database. */
function fileStoreWarnings(): Warning[] {
  if (!config.ATOLL_DATABASE_URL || config.ATOLL_FILES_URL) return []
  const message =
    "Uploaded files are stored in this server's folder. If several servers share the database, set ATOLL_FILES_URL."
  return [{ path: 'ATOLL_FILES_URL', code: 'FILES_NOT_SHARED', message }]
}

function fileSystemWarnings(): Warning[] {
  const risk = findDataFolderRisk()
  if (!risk || risk.isUnsafe) return []
  return [{ path: 'ATOLL_TENANTS', code: 'UNCERTAIN_FILE_SYSTEM', message: risk.message }]
}

function proxyWarnings(): Warning[] {
  const seen = untrustedProxySeenAt()
  if (config.ATOLL_TRUST_PROXY === 'on' || seen < now() - 30 * DAY_MS) return []
  const message = `${UNTRUSTED_PROXY_HINT} Last seen at ${toIsoString(seen)}.`
  return [{ path: 'ATOLL_TRUST_PROXY', code: 'UNTRUSTED_PROXY', message }]
}
