import { accessSync, constants, existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Command } from 'commander'
import type { Warning } from '../blueprints/shapes'
import { config, configSources, isSecret, itemsOf, type Setting, Settings } from '../config'
import { DAY, iso, now } from '../core/clock'
import { causes } from '../core/log'
import { Problem } from '../core/problem'
import { foldersWithData, listUnknownFolders } from '../tenancy/adoption'
import { checkRegistry } from '../tenancy/registry'
import { secretsFlaw } from '../tenancy/secrets'
import { isSecretsFileOpen, secretsFile } from '../tenancy/secrets-file'
import { openLimit } from '../tenancy/storage'
import { checkTenant, listTenants, migrateTenant } from '../tenancy/tenants'
import { UNTRUSTED_PROXY, untrustedProxySeen } from '../tenancy/untrusted-proxy'
import { answers, table } from './output'
import { tenantWarnings } from './warnings'

const hasRegistry = !!config.ATOLL_DATABASE_URL || existsSync(join(config.ATOLL_TENANTS, 'registry.db'))

type Check = { check: string; ok: boolean; told: string }

/** Tells every setting with its source, and whether this installation can work. */
export const doctor = new Command('doctor')
  .description('Check the installation, and list every setting')
  .option('--deep', 'also read every database as a whole, which takes a while')
  .option('--json', 'print JSON')
  .action(
    answers(
      async ({ deep = false }: { deep?: boolean }, _command: Command) => {
        const checks = [writable(), ...(hasRegistry ? await ofRegistry(deep) : await ofNothing())]
        if (checks.some(({ ok }) => !ok)) process.exitCode = 1
        return { settings: settings(), openTenants: openLimit, checks, warnings: await warnings(hasRegistry) }
      },
      ({ settings, openTenants, checks, warnings }) =>
        [
          table(settings.map(({ name, value, source, description }) => [name, value, source, description])),
          `At most ${openTenants} tenants stay open at once.`,
          ...checks.map(({ check, ok, told }) => `${ok ? 'ok     ' : 'PROBLEM'} ${check}: ${told}`),
          ...warnings.map(
            ({ tenant, path, message }) => `WARNING ${tenant ? `tenant ${tenant} ` : ''}${path}: ${message}`,
          ),
        ].join('\n\n'),
    ),
  )

const settings = () =>
  (Object.keys(Settings.properties) as Setting[]).map((name) => ({
    name,
    value: isSecret(name) && config[name] ? '(given)' : config[name],
    source: configSources[name] ?? 'default',
    description: Settings.properties[name].description ?? '',
  }))

/** A folder that is not there yet is made at the first start, if what it will be in can be written. */
function writable(): Check {
  const folder = resolve(config.ATOLL_TENANTS)
  const there = existsSync(folder)
  let place = folder
  while (!existsSync(place)) place = dirname(place)
  try {
    accessSync(place, constants.W_OK)
    return {
      check: 'data folder',
      ok: true,
      told: `${folder} ${there ? 'can be written' : 'is made at the first start'}`,
    }
  } catch {
    return { check: 'data folder', ok: false, told: `${place} cannot be written; change that, or set ATOLL_TENANTS` }
  }
}

async function secrets(): Promise<Check> {
  const check = 'secrets'
  if (!hasRegistry && !existsSync(secretsFile))
    return { check, ok: true, told: 'secrets.json is made with the first tenant' }
  const flaw = hasRegistry ? await secretsFlaw() : undefined
  if (flaw) return { check, ok: false, told: flaw }
  if (config.ATOLL_DATABASE_URL) return { check, ok: true, told: 'the keys in the database are those of its data' }
  if (isSecretsFileOpen())
    return {
      check,
      ok: false,
      told: 'secrets.json is readable by others; chmod 600 it, or start the server, which does',
    }
  return { check, ok: true, told: 'only its owner can read secrets.json' }
}

/** Whether requests that neither header nor host leads to a tenant reach one, and whether others could take its hosts. */
async function unmapped(): Promise<Check[]> {
  const [id, all] = [config.ATOLL_DEFAULT_TENANT, await listTenants()]
  if (!id) return []
  const check = 'default tenant'
  const found = all.find((tenant) => tenant.id === id)
  if (!found) return [{ check, ok: false, told: `there is no tenant "${id}"; change ATOLL_DEFAULT_TENANT` }]
  const hosts = [...found.hosts, ...itemsOf(config.ATOLL_PUBLIC_HOSTS)]
  const own = hosts.length
    ? `${id} answers at ${hosts.join(', ')} and wherever no host is mapped`
    : `${id} answers wherever no host is mapped`
  if (all.length < 2 || config.ATOLL_HOST_CLAIMS !== 'open' || hosts.length) return [{ check, ok: true, told: own }]
  const told = `with ATOLL_HOST_CLAIMS=open other tenants can take its hosts: set ATOLL_PUBLIC_HOSTS, or use "atoll tenant hosts ${id} <host>"`
  return [{ check, ok: false, told }]
}

/** One after the other: there may be more tenants than files may be open. */
async function tenants(deep: boolean): Promise<Check[]> {
  const checks: Check[] = []
  for (const { id, status } of await listTenants()) {
    const flaw = await flawOf(id, deep)
    const told = `${status}, its database opens and is up to date${deep ? ', and all of it can be read' : ''}`
    checks.push({ check: `tenant ${id}`, ok: !flaw, told: flaw ?? told })
  }
  return checks
}

async function flawOf(id: string, deep: boolean): Promise<string | undefined> {
  try {
    await migrateTenant(id)
    const flaws = deep ? await checkTenant(id) : []
    return flaws.length ? `${flaws.join(' ')} ${toDo(id)}` : undefined
  } catch (error) {
    const isDamaged = error instanceof Problem && error.code === 'TENANT_DAMAGED'
    return isDamaged ? `${(causes(error)[1] as Error).message} ${toDo(id)}` : String(error)
  }
}

const toDo = (id: string) => `Restore it from a backup, or end the tenant by "atoll tenant delete ${id}".`

async function folders(): Promise<Check[]> {
  return (await listUnknownFolders()).map((name) => ({
    check: `folder ${name}`,
    ok: false,
    told: `no tenant has it; "atoll tenant adopt ${name}" makes one of it`,
  }))
}

/** Before the first start; or the registry is lost, and the folders are not. */
async function ofNothing(): Promise<Check[]> {
  const lost = foldersWithData().map((name) => ({
    name,
    told: `no registry knows it; "atoll tenant adopt ${name}" takes it in`,
  }))
  return [await secrets(), ...lost.map(({ name, told }) => ({ check: `folder ${name}`, ok: false, told }))]
}

/** What can only be asked of a registry that can be read. */
async function ofRegistry(deep: boolean): Promise<Check[]> {
  const check = 'registry'
  try {
    await listTenants()
  } catch (error) {
    const reason = causes(error).at(-1)
    const told = `it cannot be read: ${reason instanceof Error ? reason.message : reason}. Restore it from a backup.`
    return [{ check, ok: false, told }]
  }
  const flaws = deep ? await checkRegistry() : []
  const own: Check = { check, ok: !flaws.length, told: flaws.length ? flaws.join(' ') : 'it can be read' }
  return [own, await secrets(), ...(await unmapped()), ...(await folders()), ...(await tenants(deep))]
}

/** What works, but probably not as it is meant; of tenants whose database opens, for others are a problem. */
async function warnings(anyData: boolean) {
  const found: ({ tenant?: string } & Warning)[] = proxy()
  for (const { id } of anyData ? await listTenants().catch(() => []) : [])
    found.push(...(await tenantWarnings(id).catch(() => [])).map((warning) => ({ tenant: id, ...warning })))
  return found
}

function proxy(): Warning[] {
  const seen = untrustedProxySeen()
  if (config.ATOLL_TRUST_PROXY === 'on' || seen < now() - 30 * DAY) return []
  const message = `${UNTRUSTED_PROXY} Last noted at ${iso(seen)}.`
  return [{ path: 'ATOLL_TRUST_PROXY', code: 'UNTRUSTED_PROXY', message }]
}
