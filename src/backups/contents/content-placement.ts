import { mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { toChunks } from '../../core/chunks'
import { Problem } from '../../core/problem'
import type { StagedFolder } from '../../tenancy/staged-folder'
import type { BackupControl } from '../tenant-backup'
import type { ContentHold } from './content-hold'
import { type ContentStore, openContentStore } from './content-store'
import { hashChecked } from './hash-check'
import type { NamedContent } from './named-contents'

const PARALLEL_CONTENTS = 4
const PARALLEL_COPIES = 16

/** The contents of files that a tenant got: their number, and the names of files whose content is missing or damaged. */
export type PlacedContents = { count: number; missing: string[] }

/** Which contents a tenant that is being made needs. */
export type ContentOrder = { tenant: string; contents: NamedContent[]; staged: StagedFolder; control: BackupControl }

/** Places the contents that `read` returns: undefined for one that is missing. */
export async function placeContents(
  { tenant, contents, staged, control }: ContentOrder,
  read: (content: NamedContent) => Promise<ReadableStream<Uint8Array> | undefined>,
): Promise<PlacedContents> {
  const placed: PlacedContents = { count: 0, missing: [] }
  const placer = new ContentPlacer(tenant, staged)
  for (const chunk of toChunks(contents, PARALLEL_CONTENTS)) {
    control.signal?.throwIfAborted()
    const results = await Promise.all(
      chunk.map(async (content) => {
        if (await placer.isThere(content)) return true
        const stream = await read(content).catch(ignoreDamage)
        return !!stream && (await placer.place(content.sha256, stream))
      }),
    )
    for (const [number, isPlaced] of results.entries()) countContent(placed, chunk[number]!, isPlaced)
    control.onProgress?.('restoring files', (placed.count + placed.missing.length) / contents.length)
  }
  return placed
}

/** Copies contents of a tenant to one that is being made. */
export async function copyContents(from: string, hold: ContentHold, order: ContentOrder): Promise<PlacedContents> {
  const { tenant, contents, staged, control } = order
  const [store, placed] = [openContentStore()(staged.path), { count: 0, missing: [] as string[] }]
  for (const chunk of toChunks(contents, PARALLEL_COPIES)) {
    control.signal?.throwIfAborted()
    await hold.renew()
    const results = await Promise.all(chunk.map(({ sha256 }) => store.copy(from, tenant, sha256)))
    for (const [number, isPlaced] of results.entries()) countContent(placed, chunk[number]!, isPlaced)
    control.onProgress?.('copying files', (placed.count + placed.missing.length) / contents.length)
  }
  return placed
}

/** Counts a content, or notes the file that lacks it. */
export function countContent(placed: PlacedContents, { file }: NamedContent, isPlaced: boolean) {
  if (isPlaced) placed.count++
  else if (file !== null) placed.missing.push(file)
}

/** What a target or the disk refuses ends the work; what cannot be read as a content is only missing. */
function ignoreDamage(error: unknown): undefined {
  const { code } = error as { code?: string }
  if (error instanceof Problem && error.status !== 403) throw error
  if (['ENOSPC', 'EDQUOT', 'EACCES', 'EROFS', 'EMFILE'].includes(`${code}`)) throw error
}

/** Takes contents in, each first into a draft in the staged folder, where its hash is checked. */
export class ContentPlacer {
  #drafts: string
  #live = openContentStore()()
  #store: ContentStore

  constructor(
    private tenant: string,
    staged: StagedFolder,
  ) {
    this.#drafts = join(staged.path, 'files', '.drafts')
    this.#store = openContentStore()(staged.path)
  }

  /** Tells whether the tenant that is replaced has the content, and keeps it. */
  isThere = ({ sha256, size }: NamedContent) => this.#live.has(this.tenant, sha256, size)

  /** Returns false when the bytes do not have the hash. */
  async place(sha256: string, content: ReadableStream<Uint8Array>): Promise<boolean> {
    await mkdir(this.#drafts, { recursive: true, mode: 0o700 })
    const draft = join(this.#drafts, Bun.randomUUIDv7())
    try {
      const output = await open(draft, 'wx', 0o600)
      try {
        const checked = content.pipeThrough(hashChecked(sha256) as ReadableWritablePair<Uint8Array, Uint8Array>)
        for await (const chunk of checked) await output.writeFile(chunk)
        await output.sync()
      } finally {
        await output.close()
      }
      await this.#store.put(this.tenant, sha256, draft)
      return true
    } catch (error) {
      ignoreDamage(error)
      return false
    } finally {
      await rm(draft, { force: true })
    }
  }
}

/** Ends a stream that has more bytes than it should: they would fill the disk before their hash is known. */
export const limitBytes = (content: ReadableStream<Uint8Array>, size: number) => {
  let bytes = 0
  return content.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        bytes += chunk.length
        if (bytes > size) throw new Error('The content is larger than its size.')
        controller.enqueue(chunk)
      },
    }),
  )
}
