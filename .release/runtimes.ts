import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { packages } from '../package-lock.json'
import { runCommand } from './command'
import { BUN_VERSION, isWindows, type Platform } from './platforms'

/**
 * Returns the path of Bun's executable of a platform. It comes from npm, and has the hash that package-lock.json names.
 * @throws Error when npm does not have it, or when its hash differs
 */
export async function fetchRuntime(platform: Platform, cache: string): Promise<string> {
  const { runtime } = platform
  const folder = join(cache, `${runtime.replace('@oven/', '')}-${BUN_VERSION}`)
  const executable = join(folder, isWindows(platform) ? 'bun.exe' : 'bun')
  if (existsSync(executable)) return executable
  const draft = `${folder}.draft`
  rmSync(draft, { recursive: true, force: true })
  mkdirSync(draft, { recursive: true })
  const packed = await runCommand(['npm', 'pack', '--silent', `${runtime}@${BUN_VERSION}`], { cwd: draft })
  const archive = join(draft, packed.trim().split('\n').at(-1)!)
  assertIntegrity(runtime, readFileSync(archive))
  await runCommand(['tar', '-xzf', archive, '--strip-components=2', 'package/bin'], { cwd: draft })
  rmSync(archive)
  chmodSync(join(draft, isWindows(platform) ? 'bun.exe' : 'bun'), 0o755)
  renameSync(draft, folder)
  return executable
}

/** @throws Error when the archive of a package is not the one that package-lock.json names */
export function assertIntegrity(runtime: string, archive: Uint8Array) {
  const locked = (packages as Record<string, { version?: string; integrity?: string }>)[`node_modules/${runtime}`]
  if (locked?.version !== BUN_VERSION || !locked.integrity)
    throw new Error(`package-lock.json has no ${runtime} of version ${BUN_VERSION}.`)
  const [algorithm = '', expected] = locked.integrity.split('-', 2)
  if (createHash(algorithm).update(archive).digest('base64') !== expected)
    throw new Error(`The archive of ${runtime} does not have the hash that package-lock.json names.`)
}
