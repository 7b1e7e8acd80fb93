import { getErrorChain } from '../../../core/log'
import { connect } from './connections'
import { drivers } from './drivers'
import { runMigrations } from './migration'

declare const self: Worker

/** The file to migrate, and the SQLite library to use: the one that has the file open. */
export type MigrationRequest = {
  path: string
  mark: number
  migrations: string[]
  rewriting?: number[]
  driver: keyof typeof drivers
  lockTimeout: number
}

/** Why the file was not migrated, in SQLite's words. */
export type MigrationResult = { failure?: { code: string | undefined; message: string } }

// Runs in a worker thread: brings a database up to date.
self.onmessage = async ({ data }: MessageEvent<MigrationRequest>) => {
  self.postMessage(
    await migrate(data).catch((error): MigrationResult => {
      const cause = getErrorChain(error).at(-1) as { code?: string; message?: string }
      return { failure: { code: cause.code, message: `${cause.message}` } }
    }),
  )
}

async function migrate({ path, mark, migrations, rewriting = [], driver, lockTimeout }: MigrationRequest) {
  const connection = await connect(
    path,
    { openFile: await drivers[driver](), lockTimeout },
    'pragma synchronous = full',
  )
  try {
    await runMigrations(connection, path, mark, migrations, rewriting)
    return {}
  } finally {
    connection.close()
  }
}
