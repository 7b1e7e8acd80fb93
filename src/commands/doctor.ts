import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Command } from 'commander'
import { config, configSources, isSecret, type Setting, Settings } from '../config'
import { openLimit } from '../tenancy/storage'
import { listTenants, migrateTenant } from '../tenancy/tenants'
import { answers, table } from './output'

type Check = { check: string; ok: boolean; told: string }

/** Tells every setting with its source, and whether this installation can work. */
export const doctor = new Command('doctor')
  .description('Check the installation, and list every setting')
  .option('--json', 'print JSON')
  .action(
    answers(
      async (_options: object, _command: Command) => {
        const data = existsSync(join(config.ATOLL_TENANTS, 'registry.db'))
        const checks = [writable(), secrets(), ...(data ? [...(await standard()), ...(await tenants())] : [])]
        if (checks.some(({ ok }) => !ok)) process.exitCode = 1
        return { settings: settings(), openTenants: openLimit, checks }
      },
      ({ settings, openTenants, checks }) =>
        [
          table(settings.map(({ name, value, source, description }) => [name, value, source, description])),
          `At most ${openTenants} tenants stay open at once.`,
          ...checks.map(({ check, ok, told }) => `${ok ? 'ok     ' : 'PROBLEM'} ${check}: ${told}`),
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

function secrets(): Check {
  try {
    const { mode } = statSync(join(config.ATOLL_TENANTS, 'secrets.json'))
    const open = mode & 0o077
    return {
      check: 'secrets',
      ok: !open,
      told: open ? 'secrets.json is readable by others; chmod 600 it' : 'only its owner can read secrets.json',
    }
  } catch {
    return { check: 'secrets', ok: true, told: 'secrets.json is made at the first start' }
  }
}

/** Whatever tenant names a host for its website answers there, unless it is another's. */
async function standard(): Promise<Check[]> {
  const [id, all] = [config.ATOLL_DEFAULT_TENANT, await listTenants()]
  const found = all.find((tenant) => tenant.id === id)
  if (!found || all.length < 2) return []
  const [check, ok] = ['default tenant', found.hosts.length > 0]
  const told = ok
    ? `${id} also answers at ${found.hosts.join(', ')}, which no other tenant can take`
    : `others can take the hosts at which it answers: give them to it by "atoll tenant hosts ${id} <host>"`
  return [{ check, ok, told }]
}

const tenants = async (): Promise<Check[]> =>
  Promise.all(
    (await listTenants()).map(async ({ id, status }) => {
      const told = await migrateTenant(id).then(() => undefined, String)
      return { check: `tenant ${id}`, ok: !told, told: told ?? `${status}, its database opens and is up to date` }
    }),
  )
