import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { config } from '../config'
import { DAY_MS } from '../core/clock'
import { Problem } from '../core/problem'
import type { Tenant } from '../tenancy/tenants'
import { DETECTED_BYTES } from './media-type'
import { draftFolder } from './stores/folder'
import { createSyncedFile } from './synced-file'

/** An upload that is complete on the disk, but not yet a file of the tenant. */
export type Draft = { path: string; size: number; sha256: string; beginning: Uint8Array }

/**
 * Writes what arrives to the disk, hands the complete draft on, and removes what is left of it then. Only a part of it is
 * in memory.
 * @throws 413 FILE_TOO_LARGE, 507 STORAGE_FULL; 400 MALFORMED_BODY for a body that ends early
 */
export async function withDraft<T>(
  { tenant }: Pick<Tenant, 'tenant'>,
  content: AsyncIterable<Uint8Array>,
  use: (draft: Draft) => Promise<T>,
): Promise<T> {
  const folder = draftFolder(tenant)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, Bun.randomUUIDv7())
  try {
    return await use({ path, ...(await writeDraft(path, content)) })
  } catch (error) {
    return throwDiskFailure(error)
  } finally {
    await rm(path, { force: true })
  }
}

/** Throws the error of a write to the disk. @throws 507 STORAGE_FULL when the disk is full */
export function throwDiskFailure(error: unknown): never {
  const { code } = error as { code?: string }
  if (code !== 'ENOSPC' && code !== 'EDQUOT') throw error
  throw new Problem(507, 'STORAGE_FULL', 'The disk of the server is full. Try again later.', { cause: error })
}

/**
 * Writes a content to a new file, and returns its size, hash and beginning once it is on the disk.
 * @throws 413 FILE_TOO_LARGE
 */
export async function writeDraft(path: string, content: AsyncIterable<Uint8Array>) {
  const [hasher, beginning] = [new Bun.CryptoHasher('sha256'), Buffer.alloc(DETECTED_BYTES)]
  let size = 0
  const output = await createSyncedFile(path)
  try {
    for await (const chunk of content) {
      if (size + chunk.byteLength > config.ATOLL_FILE_LIMIT) throw fileTooLarge()
      if (size < DETECTED_BYTES) beginning.set(chunk.subarray(0, DETECTED_BYTES - size), size)
      hasher.update(chunk)
      size += chunk.byteLength
      await output.write(chunk)
    }
    await output.sync()
  } finally {
    await output.close()
  }
  return { size, sha256: hasher.digest('hex'), beginning: beginning.subarray(0, Math.min(size, DETECTED_BYTES)) }
}

/** Returns the error of a file that exceeds ATOLL_FILE_LIMIT. */
export const fileTooLarge = () =>
  new Problem(413, 'FILE_TOO_LARGE', `The file is too large: at most ${config.ATOLL_FILE_LIMIT} bytes are accepted.`)

/** Removes drafts that a process left a day ago or earlier, when it was killed. */
export async function removeOldDrafts({ tenant }: Pick<Tenant, 'tenant'>) {
  const folder = draftFolder(tenant)
  for (const name of await readdir(folder).catch(() => [])) {
    const path = join(folder, name)
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }))
    if (mtimeMs < Date.now() - DAY_MS) await rm(path, { recursive: true, force: true })
  }
}
