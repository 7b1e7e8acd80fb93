import { statfsSync } from 'node:fs'
import { Command } from 'commander'
import { version } from '../../package.json'
import { config } from '../config'
import { formatBytes } from '../core/byte-size'
import {
  CURRENT_SCHEMA_VERSION,
  type MigrationResult,
  migrateAndRecord,
  planUpgrade,
  type UpgradePlan,
} from '../tenancy/schema-versions'
import { listTenants } from '../tenancy/tenant-list'
import { formatTable, pluralize, runAndPrint } from './output'

/** What an upgrade would do, and what speaks against it. */
type CheckedUpgrade = { version: string; schemaVersion: number; tenants: UpgradePlan[]; problems: string[] }

async function checkUpgrade(): Promise<CheckedUpgrade> {
  const tenants = await planUpgrade()
  const problems = tenants.flatMap(({ tenant, problem }) => (problem ? [`${tenant}: ${problem}`] : []))
  const needed = tenants.reduce((sum, { copyBytes }) => sum + copyBytes, 0)
  if (needed) {
    const { bavail, bsize } = statfsSync(config.ATOLL_TENANTS)
    if (needed + config.ATOLL_MIN_FREE > bavail * bsize)
      problems.push(`Pre-upgrade copies need ${formatBytes(needed, 'en')}, more than the disk has free.`)
  }
  return { version, schemaVersion: CURRENT_SCHEMA_VERSION, tenants, problems }
}

/** Brings all tenants up to date, one after the other, and fails when one could not be. */
export const migrateAll = async (): Promise<MigrationResult[]> => {
  const results: MigrationResult[] = []
  for (const { id } of await listTenants()) results.push(await migrateAndRecord(id))
  if (results.some(({ error }) => error)) process.exitCode = 1
  return results
}

/**
 * Tenants are brought up to date when they are opened, and by the server in the background. This command does it at
 * once, or tells beforehand what would be done.
 */
export const upgrade = new Command('upgrade')
  .description('Upgrade all tenant databases to this version')
  .option('--check', 'show what would be upgraded, and any problems, without upgrading')
  .option('--json', 'print JSON')
  .action(
    runAndPrint(
      async ({ check }: { check?: boolean }, _command: Command): Promise<CheckedUpgrade | MigrationResult[]> => {
        if (!check) return migrateAll()
        const checked = await checkUpgrade()
        if (checked.problems.length) process.exitCode = 1
        return checked
      },
      (outcome) => (Array.isArray(outcome) ? formatMigrations(outcome) : formatCheck(outcome)),
    ),
  )

export const formatMigrations = (results: MigrationResult[]) =>
  results.map(({ tenant, error }) => `${tenant}: ${error ?? 'up to date'}`).join('\n') || 'No tenants.'

function formatCheck({ version, schemaVersion, tenants, problems }: CheckedUpgrade) {
  const outdated = tenants.filter(({ pending }) => pending)
  return [
    `Version ${version}, schema ${schemaVersion}. ${outdated.length} of ${pluralize(tenants.length, 'tenant')} would be upgraded.`,
    ...(outdated.length
      ? [
          formatTable(
            outdated.map(({ tenant, schemaVersion, pending, rewrites, copyBytes }) => [
              ...[tenant, `schema ${schemaVersion}`, pluralize(pending, 'migration')],
              rewrites ? `rewrites data after a copy of ${formatBytes(copyBytes, 'en')}` : '',
            ]),
          ),
        ]
      : []),
    ...problems.map((problem) => `PROBLEM ${problem}`),
  ].join('\n')
}
