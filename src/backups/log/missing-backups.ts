import { registry } from '../../tenancy/registry'
import { parseFolderName } from '../folder-name'
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

  constructor(private target: BackupTarget) {}

  /**
   * Returns the folders without their last backup, of tenants and of logs that were stored. `isEmptied`: the target does
   * not say any more whose it is.
   */
  async find(storedLogs: ShippedLog[]): Promise<{ lost: Set<string>; isEmptied: boolean }> {
    const names = new Set(await this.target.list(''))
    const isEmptied = !isClaimedTarget(names)
    const backups = await this.#listLastBackups()
    const expected = [...backups.keys(), ...storedLogs.map(({ folder }) => folder)]
    const lost = new Set(expected.filter((folder) => !names.has(folder)))
    const backedUpLogs = storedLogs.filter(({ needsBackup }) => !needsBackup).map(({ folder }) => folder)
    const present = [...new Set([...backups.keys(), ...backedUpLogs])].filter((folder) => names.has(folder)).sort()
    for (const folder of isEmptied ? present : this.#takeTurn(present))
      if (!(await this.#hasLastBackup(folder, backups.get(folder)))) lost.add(folder)
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

  async #hasLastBackup(folder: string, name: string | undefined): Promise<boolean> {
    const names = await this.target.list(folder)
    if (name === undefined) return names.some((one) => parseFolderName(one) !== undefined)
    if (names.includes(name)) return true
    // A newer one was made meanwhile, and this one removed.
    const latest = (await this.#listLastBackups()).get(folder)
    return latest !== name
  }

  /** Returns the names of the last backups in the target, by their folders. */
  async #listLastBackups(): Promise<Map<string, string>> {
    const address = this.target.addressOf('')
    const rows = await registry.db.query('select tenant, place from tenant_backups where substr(place, 1, ?) = ?', [
      address.length,
      address,
    ])
    return new Map(rows.map(([tenant, place]) => [String(tenant), String(place).split(/[\\/]/).at(-1)!]))
  }
}
