import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { config } from '../config'
import { now, toIsoString } from '../core/clock'
import { logError } from '../core/log'
import { Problem } from '../core/problem'
import { PROCESS_ID } from '../core/process-id'
import { repeatWork } from '../core/repeated-work'
import { registry } from './registry'

const HEARTBEAT_MS = 5_000
const DEAD_AFTER_MS = 20_000
const KEPT_MS = 86_400_000 // rows of dead servers

/** A server that shares the registry: where it keeps files, and when it started. */
export type LiveServer = { name: string; folder: string; started: string }

/** The folder of this server, which tells servers that share one from others. */
const ownFolder = () => `${hostname()}:${resolve(config.ATOLL_TENANTS)}`

/** Returns the servers that are alive, oldest first; an empty list where the registry is a file. */
export async function listLiveServers(): Promise<LiveServer[]> {
  if (!config.ATOLL_DATABASE_URL) return []
  const rows = await registry.db.query(
    'select name, details, started from servers where seen > (select now from clock) - ? order by started, name',
    [DEAD_AFTER_MS],
  )
  return rows.map(([name, details, started]) => ({
    name: name as string,
    folder: JSON.parse(details as string).folder,
    started: toIsoString(Number(started)),
  }))
}

/** Returns the live servers with folders other than this one's. */
export const listServersElsewhere = async (): Promise<LiveServer[]> =>
  (await listLiveServers()).filter(({ folder }) => folder !== ownFolder())

/**
 * Says that files in local folders are missing on other servers, or undefined where that cannot be: uploads and sites are
 * in a store, or no other server is alive.
 */
export async function findLocalFilesRisk(): Promise<string | undefined> {
  if (config.ATOLL_FILES_URL) return
  const [other, ...more] = await listServersElsewhere()
  if (!other) return
  const others = more.length ? `${other.name} and ${more.length} more` : other.name
  return `Several servers share this database (${others}), but uploads and sites are in the folder of the server that took them: the others answer 404. Set ATOLL_FILES_URL on all of them.`
}

/** Returns the problem of a content that is not there, with what to do: `remedy`, unless another server may have it. */
export async function missingContent(remedy: string): Promise<Problem> {
  const elsewhere =
    (await findLocalFilesRisk()) && 'Another server may have it: set ATOLL_FILES_URL on all servers of this database.'
  return new Problem(404, 'FILE_CONTENT_MISSING', `The content of this file is missing. ${elsewhere ?? remedy}`)
}

/** Lets other servers see that this one is alive, until the result is called. */
export function announceServer(): () => void {
  if (!config.ATOLL_DATABASE_URL) return () => {}
  const name = `${hostname()} ${PROCESS_ID}`
  let isWarned = false
  const beat = async () => {
    await registry.write(async ({ query }) => {
      await query('delete from servers where seen < (select now from clock) - ?', [KEPT_MS])
      await query(
        `insert into servers (name, details, started, seen) values (?, ?, ?, (select now from clock))
         on conflict ("name") do update set seen = excluded.seen`,
        [name, JSON.stringify({ folder: ownFolder() }), now()],
      )
    })
    const risk = await findLocalFilesRisk()
    if (risk && !isWarned) logError('LOCAL_FILES_ON_SEVERAL_SERVERS', { message: risk })
    isWarned = !!risk
  }
  // The next beat makes up for a failed one.
  const beats = repeatWork(() => beat().catch(() => {}), HEARTBEAT_MS, 0)
  return () => {
    beats.stop()
    registry.write(({ query }) => query('delete from servers where name = ?', [name])).catch(() => {}) // its heartbeat ends anyway
  }
}
