import { join } from 'node:path'
import { Command } from 'commander'
import { config, configSources } from '../config'
import { enableJit } from '../core/jit-policy'
import { getErrorChain } from '../core/log'
import { type FieldError, Problem } from '../core/problem'
import type { ChangeReport } from '../definitions/push'
import type { DefinitionTarget } from '../definitions/target'
import type { Tenant } from '../tenancy/tenants'
import { runCompanion } from './companion'
import { ENV_FILE_DESCRIPTION, openSecrets } from './definitions'
import { writeFileAtomic } from './output'
import { startServer } from './serve'

type DevOptions = { tenant?: string; prune?: boolean; envFile?: string; hooks?: boolean }

const DEFAULT_TENANT = 'main'
const OUTPUTS = { 'atoll.d.ts': 'types', 'atoll-client.ts': 'client' } as const
const DONE = { create: 'created', change: 'changed', rename: 'changed', remove: 'removed' }

export const dev = new Command('dev')
  .description('Start the server and push definitions whenever a file changes')
  .argument('<folder>', 'folder of definition files; receives atoll.d.ts and atoll-client.ts')
  .argument('[command...]', 'after --: command to run alongside the server, such as vite; stops with the server')
  .option('--tenant <id>', 'tenant ID, created if missing (default: the default tenant)')
  .option('--hooks', 'also write atoll-hooks.ts: React hooks for the client, built on TanStack Query')
  .option('--prune', 'delete definitions whose file is deleted, except blueprints with entities')
  .option('--env-file <file>', ENV_FILE_DESCRIPTION)
  .action(async (folder: string, command: string[], { tenant, hooks, prune, envFile }: DevOptions) => {
    await openSecrets(envFile)
    applyDevelopmentDefaults()
    await startServer({})
    enableJit()
    const { getDefaultTenantId, getTenant } = await import('../tenancy/tenants')
    const id = tenant ?? (config.ATOLL_DEFAULT_TENANT || (await getDefaultTenantId()) || DEFAULT_TENANT)
    await createIfMissing(id)
    const { openLocalTarget } = await import('../definitions/target')
    const { watchFolder } = await import('../definitions/watch')
    const target = await openLocalTarget(id)
    const pushSaved = async () => {
      // A file that is wrong must not keep the page from the types of all others.
      await pushAndTell(target, folder, { prune, readSecret: await openSecrets(envFile) }).catch(tellFailure)
      await writeTypes(await getTenant(id), folder)
      if (hooks) await writeHooks(folder)
    }
    await watchFolder(folder, () => pushSaved().catch(tellFailure))
    await pushSaved().catch(tellFailure)
    console.log(`Watching ${folder} for the tenant "${id}".`)
    if (command.length) runCompanion(command)
  })

/** Applies what fits the machine of a developer, where nothing else is set: models and webhooks are often there, too. */
function applyDevelopmentDefaults() {
  for (const name of ['ATOLL_ALLOW_PRIVATE_NETWORK', 'ATOLL_AI_ECHO'] as const)
    if (!configSources[name]) config[name] = 'on'
}

async function createIfMissing(id: string) {
  const { isRegistered } = await import('../tenancy/tenant-list')
  const { createTenant } = await import('../tenancy/tenants')
  if (!(await isRegistered(id))) await createTenant(id)
}

type PushOptions = { prune?: boolean; readSecret: (name: string) => string | undefined }

async function pushAndTell(target: DefinitionTarget, folder: string, options: PushOptions) {
  const { pushFolder } = await import('../definitions/folder-push')
  const began = performance.now()
  const { changes } = await pushFolder(target, folder, options)
  const duration = Math.round(performance.now() - began)
  for (const change of changes) console.log(`${formatDone(change)} (${duration} ms)`)
}

const formatDone = ({ action, kind, name, details = [] }: ChangeReport) =>
  `${DONE[action]} ${kind} ${name}${details.length ? `: ${details.join(', ')}` : ''}`

/** Tells each error in a line. What is wrong in a file must not end the server. */
function tellFailure(error: unknown) {
  const problem = getErrorChain(error).find((cause) => cause instanceof Problem)
  if (!problem) return console.error(`error: ${error instanceof Error ? error.message : error}`)
  const details = Array.isArray(problem.more.details) ? (problem.more.details as FieldError[]) : []
  for (const line of toLines(problem.message, problem.code === 'INVALID_INPUT' ? details : []))
    console.error(`error: ${line.replace(/\s*\n\s*/g, ' ')}`)
}

/** The message of a change names what it is about; one that sums up the flaws of files says no more than these. */
function toLines(message: string, [first, ...others]: FieldError[]): string[] {
  const isSummary = first && message.startsWith(first.message)
  return [isSummary ? first.message : message, ...others.map((flaw) => flaw.message)]
}

/** Writes the types and the client that differ. */
async function writeTypes(tenant: Tenant, folder: string) {
  const { generateTypes } = await import('../blueprints/typegen/generator')
  for (const [name, kind] of Object.entries(OUTPUTS))
    await writeChanged(join(folder, name), (await Array.fromAsync(generateTypes(tenant, kind))).join(''))
}

async function writeHooks(folder: string) {
  const { toHooksSource } = await import('../blueprints/typegen/client-source')
  await writeChanged(join(folder, 'atoll-hooks.ts'), toHooksSource('./atoll-client'))
}

async function writeChanged(path: string, text: string) {
  const file = Bun.file(path)
  if ((await file.exists()) && (await file.text()) === text) return
  await writeFileAtomic([text], path)
  console.log(`wrote ${path}`)
}
