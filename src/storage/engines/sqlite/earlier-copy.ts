import { existsSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { CachedConnection } from './connection'

/** Keeps a copy of a database, `before-<version>.db` beside it, when a pending migration rewrites its data. */
export async function copyBeforeRewriting(writer: CachedConnection, path: string, rewriting: number[] = []) {
  const version = await writer.readPragma('user_version')
  const copy = join(dirname(path), `before-${version}.db`)
  if (!version || !rewriting.some((number) => number > version) || existsSync(copy)) return
  const draft = `${copy}.partial`
  rmSync(draft, { force: true })
  await writer.query('vacuum into ?', [draft])
  renameSync(draft, copy)
}
