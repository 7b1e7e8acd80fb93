import { Problem } from '../../core/problem'
import { type BackupEncryption, createDecryption } from '../encryption'
import type { BackupTarget } from '../targets/backup-target'
import { CONTENTS_FOLDER } from './content-list'
import { type ContentSeal, toStoredName } from './content-seal'
import { hashChecked } from './hash-check'
import type { NamedContent } from './named-contents'

const CHUNK_BYTES = 65_536
const TAG_BYTES = 16
const REREAD_BYTES = 16 << 20 // of contents that were stored earlier, by each backup of a tenant

type Decrypt = (content: ReadableStream<Uint8Array>) => Promise<ReadableStream<Uint8Array>>

/** The contents of a tenant that a target has: whole ones, and torn or changed ones. */
export type StoredContents = { whole: Set<string>; damaged: Set<string> }

/**
 * Returns which of the contents a target has, by their hashes. One of another length is damaged, and so is one whose hash
 * differs, of some that are read back: other ones each time.
 * @throws 502 BACKUP_TARGET_FAILED
 */
export async function findStoredContents(
  target: BackupTarget,
  tenant: string,
  contents: NamedContent[],
  seal: ContentSeal | undefined,
  encryption: Pick<BackupEncryption, 'encrypt'> | undefined,
): Promise<StoredContents> {
  const found: StoredContents = { whole: new Set(), damaged: new Set() }
  const folder = `${tenant}/${CONTENTS_FOLDER}`
  const sizes = await target.listSizes(folder)
  if (!sizes.size) return found
  const toStoredSize = encryption ? await measureEncryption(encryption) : (size: number) => size
  const whole = contents.filter(({ sha256, size }) => {
    const stored = sizes.get(toStoredName(sha256, seal))
    if (stored === undefined) return false
    const isWhole = stored === toStoredSize(size)
    found[isWhole ? 'whole' : 'damaged'].add(sha256)
    return isWhole
  })
  const decrypt = await openSeal(seal)
  const start = Math.floor(Math.random() * whole.length)
  let left = REREAD_BYTES
  for (const { sha256, size } of [...whole.slice(start), ...whole.slice(0, start)]) {
    left -= size
    if (left < 0) break
    if (await isContentSound(target, `${folder}/${toStoredName(sha256, seal)}`, sha256, decrypt)) continue
    found.whole.delete(sha256)
    found.damaged.add(sha256)
  }
  return found
}

/** Returns what decrypts contents by their seal; undefined for contents that are not encrypted. */
export const openSeal = async (seal: ContentSeal | undefined): Promise<Decrypt | undefined> =>
  seal && createDecryption({ identities: [seal.identity] }, async () => [])

/** Reads a content back. Returns whether its bytes have the hash. @throws 502 BACKUP_TARGET_FAILED */
export async function isContentSound(
  target: BackupTarget,
  path: string,
  sha256: string,
  decrypt: Decrypt | undefined,
): Promise<boolean> {
  const stored = await target.read(path)
  if (!stored) return false
  try {
    const content = decrypt ? await decrypt(stored) : stored
    const checked = content.pipeThrough(hashChecked(sha256) as ReadableWritablePair<Uint8Array, Uint8Array>)
    for await (const _ of checked);
    return true
  } catch (error) {
    if (error instanceof Problem && error.status >= 500) throw error
    return false
  }
}

/** Returns what tells how many bytes a content has once it is encrypted: a header, and chunks with a tag each. */
export async function measureEncryption({ encrypt }: Pick<BackupEncryption, 'encrypt'>) {
  const empty = await new Response(await encrypt(new Blob([]).stream())).bytes()
  return (size: number) => empty.byteLength + size + TAG_BYTES * (Math.max(1, Math.ceil(size / CHUNK_BYTES)) - 1)
}
