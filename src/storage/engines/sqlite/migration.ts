import { workerUrl } from '../../../core/worker-url'
import { listPendingMigrations } from '../../port'
import type { CachedConnection } from './connection'
import { copyBeforeRewriting } from './earlier-copy'
import type { MigrationRequest, MigrationResult } from './migration-worker'

/**
 * Brings a database from schema `version` up to date. A migration that rewrites data runs in a worker thread, because it
 * may take a minute, in which other tenants are served; any other runs on the connection that `openWriter` returns.
 */
export async function migrateDatabase(
  version: number,
  request: MigrationRequest,
  openWriter: () => Promise<CachedConnection>,
) {
  const { path, mark, migrations, rewriting = [] } = request
  if (version && rewriting.some((number) => number > version)) await migrateInWorker(request)
  await runMigrations(await openWriter(), path, mark, migrations, rewriting)
}

/** Runs the pending migrations of a database, once, even when several processes try at the same time. */
export async function runMigrations(
  connection: CachedConnection,
  path: string,
  mark: number,
  migrations: string[],
  rewriting: number[],
) {
  connection.execute('pragma synchronous = full')
  await copyBeforeRewriting(connection, path, rewriting)
  await connection.migrate((version) => listPendingMigrations(version, migrations), mark)
  await connection.assertMark(mark)
  connection.execute('pragma synchronous = normal')
}

/** @throws an error with the code of SQLite's */
async function migrateInWorker(request: MigrationRequest) {
  const worker = new Worker(workerUrl('storage/engines/sqlite/migration-worker'))
  try {
    const { failure } = await new Promise<MigrationResult>((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<MigrationResult>) => resolve(data)
      worker.onerror = ({ message }) => reject(new Error(message))
      worker.postMessage(request)
    })
    if (failure) throw Object.assign(new Error(failure.message), { code: failure.code })
  } finally {
    worker.terminate()
  }
}
