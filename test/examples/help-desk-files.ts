import { cpSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createTempFolder, createTenantByCli, type RunOptions, runAtoll, SOURCE_COMMAND } from '../fakes/cli'

const root = resolve(import.meta.dir, '../..')
const GENERATED = /\/(node_modules|dist|tenants|atoll\.d\.ts|atoll-(client|hooks)\.ts)$/

export const TENANT = 'desk'

/** Copies the example to a folder of its own, as its users do. Returns the folder. */
export function copyFiles() {
  const folder = join(createTempFolder(), 'help-desk')
  cpSync(join(root, 'examples/help-desk'), folder, { recursive: true, filter: (path) => !GENERATED.test(path) })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

/**
 * Copies the example, with a tenant to which its definitions are pushed, and
 * with the client of that tenant.
 */
export async function copyHelpDesk(
  env: Record<string, string> = {},
  prepare: (folder: string) => Promise<unknown> = async () => {},
) {
  const folder = copyFiles()
  const options: RunOptions = { at: folder, env: { MODELS_TOKEN: 'sk-test', ...env }, program: SOURCE_COMMAND }
  await prepare(folder)
  const run = async (...args: string[]) => {
    const { code, out, err } = await runAtoll(args, { ...options, timeout: 60_000 })
    if (code) throw new Error(`atoll ${args.join(' ')}: ${out}${err}`)
    return out
  }
  await createTenantByCli(options, TENANT)
  await run('tenant', 'hosts', TENANT, '127.0.0.1')
  const pushed = await run('push', 'definitions', '--tenant', TENANT, '--yes')
  const outputs = ['--out', 'definitions/atoll-client.ts', '--hooks', 'definitions/atoll-hooks.ts']
  await run('types', '--tenant', TENANT, '--client', ...outputs)
  return { folder, options, run, pushed }
}

/** Runs a program of the packages, such as `vite`, and throws what it prints when it fails. */
export async function runPackage(folder: string, program: string, ...args: string[]) {
  const child = Bun.spawn([process.execPath, join(root, 'node_modules', program), ...args], {
    ...{ cwd: folder, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
  })
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  if (code) throw new Error(`${program}: ${out}${err}`)
}
