import { join } from 'node:path'
import { toChunks } from '../core/chunks'
import { keepContent, storeContent } from '../files/contents'
import { writeDraft } from '../files/drafts'
import type { QuotaReservation } from '../limits/quota-use'
import type { Tenant } from '../tenancy/tenants'
import type { UnpackedFile, UnpackedSite } from './archive'
import { ENCODERS, ENCODINGS, isWorthEncoding } from './encodings'
import type { SiteFile, StoredContent } from './tables'

const CONCURRENT_STORES = 8

type DraftContent = StoredContent & { draft: string }
type Encoded = Pick<SiteFile, 'encodings'>

/**
 * Stores the files of an archive, also encoded where that makes them smaller, and returns the manifest. Contents of
 * `earlier` files are neither encoded nor stored again.
 * @throws 403 QUOTA_EXCEEDED, 503 FILE_STORE_UNAVAILABLE
 */
export async function storeSite(
  tenant: Tenant,
  { files, folder }: UnpackedSite,
  earlier: readonly SiteFile[],
  quota: QuotaReservation | undefined,
): Promise<SiteFile[]> {
  const earlierFiles = new Map(earlier.map((file) => [file.sha256, file]))
  const encodedFiles = new Map<string, Encoded>()
  const drafts = new Map<string, DraftContent>()
  const addDraft = (draft: DraftContent) => {
    if (drafts.has(draft.sha256)) return
    quota?.add(draft.size)
    drafts.set(draft.sha256, draft)
  }
  for (const file of files) {
    if (encodedFiles.has(file.sha256)) continue
    const same = earlierFiles.get(file.sha256)
    if (same && (await areKept(tenant, same))) {
      encodedFiles.set(file.sha256, same)
      continue
    }
    addDraft(file)
    encodedFiles.set(file.sha256, await encode(file, folder, addDraft))
  }
  for (const some of toChunks([...drafts.values()], CONCURRENT_STORES))
    await Promise.all(some.map(({ draft, ...content }) => storeContent(tenant, { ...content, path: draft })))
  return files.map(({ path, sha256, size }) => {
    const { encodings } = encodedFiles.get(sha256)!
    return { path, sha256, size, ...(encodings && { encodings }) }
  })
}

/** Keeps the contents of a file that is stored already. Returns whether all of them are. */
async function areKept(tenant: Tenant, { encodings = {}, ...content }: SiteFile) {
  for (const each of [content, ...Object.values(encodings)]) if (!(await keepContent(tenant, each))) return false
  return true
}

/** Encodes one file after the other, because other work of the process needs the threads, too. */
async function encode(file: UnpackedFile, folder: string, addDraft: (draft: DraftContent) => void): Promise<Encoded> {
  if (!isWorthEncoding(file)) return {}
  const bytes = await Bun.file(file.draft).bytes()
  const encodings: SiteFile['encodings'] = {}
  for (const name of ENCODINGS) {
    const result = await ENCODERS[name](bytes)
    if (result.byteLength >= file.size) continue
    const draft = join(folder, Bun.randomUUIDv7())
    const { sha256, size } = await writeDraft(draft, toIterable(result))
    addDraft({ sha256, size, draft })
    encodings[name] = { sha256, size }
  }
  return Object.keys(encodings).length ? { encodings } : {}
}

async function* toIterable(bytes: Uint8Array) {
  yield bytes
}
