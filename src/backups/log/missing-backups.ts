import { parseFolderName } from '../folder-name'
import { listBackedUpAt } from '../last-backups'
import { isClaimedTarget } from '../target-owner'
import type { BackupTarget } from '../targets/backup-target'
import type { ShippedLog } from './shipped-log'

const MAX_LISTED_FOLDERS = 20 // by one look; the others have their turn at the next ones

/**
 * Finds the tenants whose last backup is gone from a target. The folder of one that is written to is there again as soon
 * as its log is stored, so each is listed: a few by each look, and all where the target was emptied.
 */
export class MissingBackups {
  #next = ''

  /**
   * Returns the folders without their last backup, of tenants and of logs that were stored. `isEmptied`: the target does
   * not say any more whose it is.
   */
  async find(target: BackupTarget, storedLogs: ShippedLog[]): Promise<{ lost: Set<string>; isEmptied: boolean }> {
    const names = new Set(await target.list(''))
    const isEmptied = !isClaimedTarget(names)
    const backups = await listBackedUpAt(target.addressOf(''))
    const expected = [...backups.keys(), ...storedLogs.map(({ folder }) => folder)]
    const lost = new Set(expected.filter((folder) => !names.has(folder)))
    const backedUpLogs = storedLogs.filter(({ needsBackup }) => !needsBackup).map(({ folder }) => folder)
    const present = [...new Set([...backups.keys(), ...backedUpLogs])].filter((folder) => names.has(folder)).sort()
    for (const folder of isEmptied ? present : this.#takeTurn(present))
      if (!(await this.#hasLastBackup(target, folder, backups.get(folder)))) lost.add(folder)
    return { lost, isEmptied }
  }

  #takeTurn(folders: string[]) {
    const start = Math.max(
      0,
      folders.findIndex((folder) => folder >= this.#next),
    )
    const turn = [...folders.slice(start), ...folders.slice(0, start)]
    this.#next = turn[MAX_LISTED_FOLDERS] ?? ''
    return turn.slice(0, MAX_LISTED_FOLDERS)
  }

  async #hasLastBackup(target: BackupTarget, folder: string, name: string | undefined): Promise<boolean> {
    const names = await target.list(folder)
    if (name === undefined) return names.some((one) => parseFolderName(one) !== undefined)
    if (names.includes(name)) return true
    // A newer one was made meanwhile, and this one removed.
    const latest = (await listBackedUpAt(target.addressOf(''))).get(folder)
    return latest !== name
  }
}
