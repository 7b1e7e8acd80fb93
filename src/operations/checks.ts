import { accessSync, constants, existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { listOverdueBackups } from '../backups/last-backups'
import { getLogShippingState } from '../backups/log/log-shipper'
import { config, configSources, isSecretSetting, type SettingName, Settings } from '../config'
import { now, toIsoString } from '../core/clock'
import { parseList } from '../core/setting-types'
import { listUnknownFolders } from '../tenancy/adoption'
import { findDataFolderRisk } from '../tenancy/databases'
import { describeDefaultTenant, getDefaultTenant } from '../tenancy/default-tenant'
import { findSecretsProblem } from '../tenancy/installation-keys'
import { isSecretsFileExposed, secretsFile } from '../tenancy/secrets-file'
import { findLocalFilesRisk } from '../tenancy/servers'
import { listAbandonedFolders } from '../tenancy/tenant-folders'
import { listTenants } from '../tenancy/tenant-list'

/** Tells whether this installation has a registry of tenants. */
export const hasRegistry = () => !!config.ATOLL_DATABASE_URL || existsSync(join(config.ATOLL_TENANTS, 'registry.db'))

/** One thing that was checked, and what came out. */
export type Check = { check: string; ok: boolean; message: string }

/** Returns every setting with its value, unless it is secret, and where it comes from. */
export const listSettings = () =>
  (Object.keys(Settings.properties) as SettingName[]).map((name) => ({
    name,
    value: isSecretSetting(name) && config[name] ? '(given)' : config[name],
    source: configSources[name] ?? 'default',
    description: Settings.properties[name].description ?? '',
  }))

/** Checks the data folder. A missing one is created at the first start, if its nearest existing parent is writable. */
export function checkDataFolder(): Check {
  const folder = resolve(config.ATOLL_TENANTS)
  const exists = existsSync(folder)
  let nearestFolder = folder
  while (!existsSync(nearestFolder)) nearestFolder = dirname(nearestFolder)
  try {
    accessSync(nearestFolder, constants.W_OK)
    const risk = findDataFolderRisk()
    if (risk?.isUnsafe) return { check: 'data folder', ok: false, message: risk.message }
    return {
      check: 'data folder',
      ok: true,
      message: `${folder} ${exists ? 'can be written' : 'will be created at the first start'}`,
    }
  } catch {
    return {
      check: 'data folder',
      ok: false,
      message: `${nearestFolder} is not writable; change its permissions, or set ATOLL_TENANTS`,
    }
  }
}

/** Checks whether the keys are there, and only their owner can read them. */
export async function checkSecrets(): Promise<Check> {
  const check = 'secrets'
  if (!hasRegistry() && !existsSync(secretsFile))
    return { check, ok: true, message: 'secrets.json will be created with the first tenant' }
  const flaw = hasRegistry() ? await findSecretsProblem() : undefined
  if (flaw) return { check, ok: false, message: flaw }
  if (config.ATOLL_DATABASE_URL) return { check, ok: true, message: 'the keys in the database match its data' }
  if (isSecretsFileExposed())
    return {
      check,
      ok: false,
      message: 'secrets.json is readable by others; run chmod 600 on it, or start the server, which does so',
    }
  return { check, ok: true, message: 'only its owner can read secrets.json' }
}

/** Checks whether requests without a known header or host reach a tenant, and whether others could take its hosts. */
export async function checkDefaultTenant(): Promise<Check[]> {
  const [id, all, check] = [config.ATOLL_DEFAULT_TENANT, await listTenants(), 'default tenant']
  if (!id) return all.length < 2 ? [] : [await describeUnset(all.map((tenant) => tenant.id))]
  const defaultTenant = all.find((tenant) => tenant.id === id)
  if (!defaultTenant) return [{ check, ok: false, message: `there is no tenant "${id}"; change ATOLL_DEFAULT_TENANT` }]
  const hosts = [...defaultTenant.hosts, ...parseList(config.ATOLL_PUBLIC_HOSTS)]
  const own = hosts.length
    ? `${id} answers at ${hosts.join(', ')} and wherever no host is mapped`
    : `${id} answers wherever no host is mapped`
  if (all.length < 2 || config.ATOLL_HOST_CLAIMS !== 'open' || hosts.length) return [{ check, ok: true, message: own }]
  const message = `with ATOLL_HOST_CLAIMS=open, other tenants can claim its hosts; set ATOLL_PUBLIC_HOSTS, or use "atoll tenant hosts ${id} <host>"`
  return [{ check, ok: false, message }]
}

/** Names who answers where no host names a tenant, as there are several. */
async function describeUnset(ids: string[]): Promise<Check> {
  const chosen = await getDefaultTenant()
  const isMissing = chosen.tenant !== null && !ids.includes(chosen.tenant)
  const message = isMissing ? `There is no tenant "${chosen.tenant}".` : describeDefaultTenant(chosen)
  return { check: 'default tenant', ok: !isMissing, message: `${message} To change it, run "atoll tenant default".` }
}

const MAX_NAMED_TENANTS = 10

/** Checks whether the tenants have recent backups, where those are scheduled. */
export async function checkBackups(): Promise<Check> {
  const check = 'backups'
  if (!config.ATOLL_BACKUP_SCHEDULE) {
    const missing = config.ATOLL_BACKUP_TO ? 'ATOLL_BACKUP_SCHEDULE' : 'ATOLL_BACKUP_TO and ATOLL_BACKUP_SCHEDULE'
    return { check, ok: true, message: `none are scheduled; set ${missing}, or run "atoll backup" regularly` }
  }
  const overdue = await listOverdueBackups(MAX_NAMED_TENANTS + 1)
  if (!overdue.length) return { check, ok: true, message: 'every tenant has a recent backup' }
  const named = overdue.slice(0, MAX_NAMED_TENANTS).map(({ id, problem }) => (problem ? `${id} (${problem})` : id))
  const list = `${named.join(', ')}${overdue.length > MAX_NAMED_TENANTS ? ' and others' : ''}`
  const message = `these tenants have had none for two days or more: ${list}; look for BACKUP_FAILED in the log of the server, then run "atoll backup"`
  return { check, ok: false, message }
}

/** Checks whether several servers keep files in folders of their own. */
export async function checkServers(): Promise<Check[]> {
  const risk = await findLocalFilesRisk()
  return risk ? [{ check: 'servers', ok: false, message: risk }] : []
}

/** Finds folders that no tenant uses. */
export async function checkUnknownFolders(): Promise<Check[]> {
  const toCheck = (name: string, message: string): Check => ({ check: `folder ${name}`, ok: false, message })
  const unknown = await listUnknownFolders()
  return [
    ...unknown.map((name) => toCheck(name, `no tenant uses it; import it with "atoll tenant adopt ${name}"`)),
    ...(await listAbandonedFolders()).map((name) => toCheck(name, ABANDONED)),
  ]
}

const ABANDONED =
  'its tenant was being deleted, or was never completely restored; "atoll doctor --fix", or the next start of the server, moves it to .trash'

/** Checks whether what was written lately is in the target of continuous backups. */
export function checkLogShipping(): Check[] {
  const state = getLogShippingState()
  if (!state) return []
  const behind = state.unprotected.filter(({ since }) => now() - since > MAX_SHIPPING_DELAY_MS)
  if (!state.problem && !behind.length)
    return [{ check: 'continuous backup', ok: true, message: 'writes reach the backup target within seconds' }]
  const named = behind
    .slice(0, MAX_NAMED_TENANTS)
    .map(({ folder, since }) => `${folder} (${Math.round((now() - since) / 1_000)} s, since ${toIsoString(since)})`)
  const more = behind.length > MAX_NAMED_TENANTS ? ` and ${behind.length - MAX_NAMED_TENANTS} others` : ''
  const list = named.length ? `; writes cannot be restored from it of ${named.join(', ')}${more}` : ''
  return [{ check: 'continuous backup', ok: false, message: `${state.problem ?? 'the target is behind'}${list}` }]
}

const MAX_SHIPPING_DELAY_MS = 10_000
