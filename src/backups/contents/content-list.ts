import { splitLines } from '../../core/lines'
import { Problem } from '../../core/problem'
import { joinPath, type StoredBackup } from '../backup-list'
import type { BackupFile, Manifest } from '../manifest'
import { readStoredFile } from '../stored-file'
import type { BackupTarget } from '../targets/backup-target'

/** The folder of the contents of files beside the backups of a tenant, which share them. */
export const CONTENTS_FOLDER = 'contents'
/** The name of the file of a backup that lists the names of its contents in that folder. It is never encrypted. */
export const LISTING_NAME = 'contents.txt'
const STORED_LISTING_NAME = `${LISTING_NAME}.zst`

export const findListing = ({ files }: Manifest) => files.find(({ name }) => name === STORED_LISTING_NAME)

/** Returns the names of the contents that a backup needs. @throws 409 BACKUP_DAMAGED */
export async function readListing({ target, folder, manifest }: StoredBackup): Promise<Set<string>> {
  const listing = findListing(manifest)
  if (!listing) return new Set()
  return toNames(readStoredFile(target, folder, listing))
}

/** Returns the names that the listing of a backup has which is being made; none when it has no listing yet. */
export async function readUnfinishedListing(target: BackupTarget, folder: string): Promise<Set<string>> {
  const stored = await target.read(joinPath(folder, STORED_LISTING_NAME))
  if (!stored) return new Set()
  try {
    return await toNames(stored.pipeThrough(new DecompressionStream('zstd') as never))
  } catch (cause) {
    throw new Problem(409, 'BACKUP_DAMAGED', `${target.addressOf(folder)} has no readable list of contents.`, { cause })
  }
}

async function toNames(listing: AsyncIterable<Uint8Array>): Promise<Set<string>> {
  const names = new Set<string>()
  for await (const name of splitLines(listing)) names.add(name)
  return names
}

/** Tells whether a file of a backup says which contents it has. */
export const isOfContents = ({ name }: BackupFile) => name.startsWith('contents.')
