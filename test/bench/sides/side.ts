import { mkdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import type { SentRequest } from '../load'
import type { Question } from '../questions'
import type { TableRow } from '../table-rows'

export type SideServer = {
  url: string
  pid: number
  /** Those of the caller. */
  headers: Record<string, string>
  /** From the start of the program to its first answer (ms). */
  startMs: number
} & AsyncDisposable

/** The needs of a row, which a server knows before it starts. */
export type RowNeeds = Pick<TableRow, 'caller' | 'writes' | 'isDurable' | 'isJustImported' | 'hasSingleIndexes'>

/** A server of the table: it is filled once, and started on a fresh copy of its data for each row of each round. */
export type Side = {
  name: string
  /** Returns how many contacts are filled in per second. */
  fill(): Promise<number>
  start(needs: RowNeeds): Promise<SideServer>
  /** Returns undefined for what this server does not have. */
  toRequest(question: Question): SentRequest | undefined
  /** Room on the disk (MB), with indexes of one field. */
  measureSize(): number
  /** Whether it cannot wait for the disk at a commit. */
  isNeverDurable?: boolean
}

/** Copies a folder in the state that a restart would find. */
export function copyFolder(from: string, to: string, options: { isSynced?: boolean } = {}) {
  rmSync(to, { recursive: true, force: true })
  mkdirSync(dirname(to), { recursive: true })
  const copy = Bun.spawnSync(['cp', '-a', '--reflink=auto', from, to])
  if (!copy.success) throw new Error(`${from} could not be copied: ${copy.stderr}`)
  // What the disk still has to write would delay the commits that are measured.
  if (options.isSynced) Bun.spawnSync(['sync', '-f', to])
  return to
}

/** The disk space of a file or folder (MB). */
export function measureRoom(path: string): number {
  const { stdout } = Bun.spawnSync(['du', '-sk', path])
  return (Number.parseInt(`${stdout}`, 10) * 1_024) / 1e6
}
