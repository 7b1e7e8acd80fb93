import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { config } from '../../config'
import { tryParseJson } from '../../core/json'
import { type LogPosition, tenantFolder } from '../../tenancy/databases'
import { INSTALLATION_FOLDER } from '../folder-name'

const Position = Type.Object({
  log: Type.String(),
  offset: Type.Integer(),
  checksum: Type.Tuple([Type.Integer(), Type.Integer()]),
})

/** How far the log of a database is stored in a target, in a file beside the database. */
const LogState = Type.Object({
  /** The address of the target, and the folder of the generation there. */
  target: Type.String(),
  generation: Type.String(),
  /** The inode of the database file: a copy of the file has another one. */
  inode: Type.String(),
  /** The last segment that is stored, and where it ends. */
  segment: Type.Integer(),
  end: Type.Optional(Position),
  /** The segment that was being stored, and where it ends. */
  next: Type.Optional(Type.Object({ name: Type.String(), end: Position })),
  /** The state of the file after it was closed, when everything was stored. */
  closed: Type.Optional(Type.String()),
  /** Whether a backup was made from which the generation goes on. */
  hasBackup: Type.Boolean(),
})
export type LogState = Static<typeof LogState>

const pathOf = (folder: string) =>
  folder === INSTALLATION_FOLDER
    ? join(config.ATOLL_TENANTS, 'registry-shipped-log.json')
    : join(tenantFolder(folder), 'shipped-log.json')

/** Returns what was last stored of a log; undefined when that is not known. */
export function readLogState(folder: string): LogState | undefined {
  try {
    const value = tryParseJson(readFileSync(pathOf(folder), 'utf8'))
    return Value.Check(LogState, value) ? value : undefined
  } catch {
    return undefined // it was never stored
  }
}

/** Replaces the file. A tenant that was deleted meanwhile has none. */
export function writeLogState(folder: string, state: LogState) {
  const path = pathOf(folder)
  try {
    writeFileSync(`${path}.draft`, JSON.stringify(state), { mode: 0o600 })
    renameSync(`${path}.draft`, path)
  } catch {
    // The next start begins a new generation, with a backup.
  }
}

export const inodeOf = (fileState: string): string => fileState.split(' ')[0]!

/** Returns the place in the log of a copy, which the log of a file that is closed has at its end. */
export function findCopyPlace(copy: { log?: LogPosition; fileState: string }, state: LogState | undefined) {
  if (!state || inodeOf(copy.fileState) !== state.inode) return
  const place = copy.log ?? (state.closed === copy.fileState ? state.end : undefined)
  if (!place) return
  return { generation: state.generation, segment: state.segment, log: place.log, offset: place.offset }
}
