import { toBodyStream } from '../../core/body-stream'
import { toChunks } from '../../core/chunks'
import { joinLines } from '../../core/lines'
import { getErrorChain, log } from '../../core/log'
import type { BackupEncryption } from '../encryption'
import type { BackupFile } from '../manifest'
import { storeFile } from '../stored-file'
import type { BackupTarget } from '../targets/backup-target'
import type { BackupControl } from '../tenant-backup'
import type { ContentHold } from './content-hold'
import { CONTENTS_FOLDER, LISTING_NAME } from './content-list'
import { waitForPruning } from './content-removal'
import {
  type ContentSeal,
  createContentEncryption,
  createContentSeal,
  SEAL_FILE_NAME,
  toStoredName,
} from './content-seal'
import { openContentStore } from './content-store'
import { ContentDamaged, hashChecked } from './hash-check'
import type { NamedContent } from './named-contents'
import { findStoredContents } from './stored-contents'

const PARALLEL_CONTENTS = 4

/**
 * The contents of files of a backup: their number and size in bytes, how many of them the target did not have before, or
 * had torn or changed, and the names of files whose content the store lacks.
 */
export type BackedUpContents = { count: number; bytes: number; added: number; mended?: number; missing: string[] }

/** The summary of a backup without contents. */
export const NO_CONTENTS: BackedUpContents = { count: 0, bytes: 0, added: 0, missing: [] }

/** What contents are backed up, and where: `folder` is that of the backup. */
export type ContentBackup = {
  tenant: string
  contents: NamedContent[]
  target: BackupTarget
  folder: string
  encryption: BackupEncryption | undefined
  hold: ContentHold
  control: BackupControl
}

/**
 * Stores the contents that the target does not have yet, and the list of all of them. The list is written first: whoever
 * removes contents that no backup needs reads it.
 */
export async function storeContents(order: ContentBackup): Promise<{ files: BackupFile[]; summary: BackedUpContents }> {
  const { tenant, contents, target, folder, encryption } = order
  const summary: BackedUpContents = { ...NO_CONTENTS, missing: [] }
  if (!contents.length) return { files: [], summary }
  const seal = encryption && (await createContentSeal(tenant, encryption))
  const files = [await storeListing(order, seal)]
  if (seal && encryption) {
    const open = () => new Blob([JSON.stringify(seal)]).stream()
    files.push(await storeFile(target, folder, { name: SEAL_FILE_NAME, open }, encryption))
  }
  await waitForPruning(target, tenant, order.control.signal)
  const contentEncryption = seal && (await createContentEncryption(seal))
  const { whole, damaged } = await findStoredContents(target, tenant, contents, seal, contentEncryption)
  for (const chunk of toChunks(contents, PARALLEL_CONTENTS)) {
    order.control.signal?.throwIfAborted()
    await order.hold.renew()
    const results = await Promise.all(
      chunk.map(async (content) => {
        const { sha256 } = content
        if (whole.has(sha256)) return 'there'
        if (await storeContent(order, content, seal, contentEncryption)) return damaged.has(sha256) ? 'mended' : 'added'
        // Nothing may be taken for it.
        if (damaged.has(sha256)) await target.removeFile(`${tenant}/${CONTENTS_FOLDER}/${toStoredName(sha256, seal)}`)
        return 'missing'
      }),
    )
    for (const [number, result] of results.entries()) {
      const { size, file } = chunk[number]!
      if (result === 'missing') {
        if (file !== null) summary.missing.push(file)
        continue
      }
      summary.count++
      summary.bytes += size
      if (result === 'added') summary.added++
      if (result === 'mended') summary.mended = (summary.mended ?? 0) + 1
    }
    order.control.onProgress?.('copying files', (summary.count + summary.missing.length) / contents.length)
  }
  if (summary.mended) log.warn({ event: 'backup-contents-mended', tenant, contents: summary.mended })
  return { files, summary }
}

function storeListing({ contents, target, folder }: ContentBackup, seal: ContentSeal | undefined) {
  const open = () => toBodyStream(joinLines(toNames(contents, seal)))
  return storeFile(target, folder, { name: LISTING_NAME, open }, undefined)
}

async function* toNames(contents: NamedContent[], seal: ContentSeal | undefined) {
  for (const { sha256 } of contents) yield toStoredName(sha256, seal)
}

/** Returns false when the store lacks the content, or has something else in its place. */
async function storeContent(
  { tenant, target }: ContentBackup,
  { sha256 }: NamedContent,
  seal: ContentSeal | undefined,
  encryption: Pick<BackupEncryption, 'encrypt'> | undefined,
): Promise<boolean> {
  const content = await openContentStore()().open(tenant, sha256)
  if (!content) return false
  const name = toStoredName(sha256, seal).replace(/\.age$/, '')
  const open = () => content.stream().pipeThrough(hashChecked(sha256))
  try {
    await storeFile(target, `${tenant}/${CONTENTS_FOLDER}`, { name, open, isCompressed: false }, encryption)
    return true
  } catch (error) {
    if (getErrorChain(error).some((cause) => cause instanceof ContentDamaged)) return false
    throw error
  }
}
