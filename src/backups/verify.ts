import { toIsoString } from '../core/clock'
import { Problem } from '../core/problem'
import { joinPath, listBackedUpTenants, readManifest } from './backup-list'
import { CONTENTS_FOLDER, findListing, readListing } from './contents/content-list'
import { isContentSound } from './contents/stored-contents'
import { INSTALLATION_FOLDER, orderFolders } from './folder-name'
import { parseSegmentName } from './log/log-segment'
import { LOG_FOLDER } from './log/shipped-log'
import type { BackupTarget } from './targets/backup-target'

/** What was found in the backups of a tenant. `until` is the last moment that its log has. */
export type VerifiedTenant = { tenant: string; backups: number; until?: string; problems: string[] }

/**
 * Reads everything in a target back, and compares it with what was stored: manifests, the hashes of files and contents, and
 * the order of the segments of logs. It needs no key: what is encrypted is compared as it is stored.
 * @throws 502 BACKUP_TARGET_FAILED
 */
export async function verifyTarget(target: BackupTarget, tenants?: string[]): Promise<VerifiedTenant[]> {
  await target.probe()
  const found: VerifiedTenant[] = []
  for (const folder of tenants?.length ? tenants : [INSTALLATION_FOLDER, ...(await listBackedUpTenants(target))]) {
    const verified = await verifyTenant(target, folder)
    if (folder !== INSTALLATION_FOLDER || verified.backups || verified.problems.length) found.push(verified)
  }
  return found
}

async function verifyTenant(target: BackupTarget, folder: string): Promise<VerifiedTenant> {
  const verified: VerifiedTenant = { tenant: folder, backups: 0, problems: [] }
  const generations = new Set<string>()
  const listings: Listing[] = []
  const names = orderFolders(await target.list(folder)).map(({ name }) => name)
  for (const name of names)
    try {
      const backup = await readManifest(target, joinPath(folder, name))
      if (!backup) continue // it is being made
      verified.backups++
      if (backup.manifest.log) generations.add(backup.manifest.log.generation)
      for (const { name, bytes, sha256 } of backup.manifest.files)
        await assertStoredFile(target, joinPath(backup.folder, name), bytes, sha256)
      if (!findListing(backup.manifest)) continue
      const names = await readListing(backup)
      listings.push({ place: backup.place, names, lacking: names.size - (backup.manifest.contents?.count ?? 0) })
    } catch (error) {
      verified.problems.push(toSentence(error))
    }
  if (!verified.backups && names.length) verified.problems.push(`No backup in ${target.addressOf(folder)} is complete.`)
  await verifyContents(target, folder, listings, verified)
  await verifyLog(target, folder, generations, verified)
  return verified
}

async function assertStoredFile(target: BackupTarget, path: string, bytes: number, sha256: string) {
  const stored = await target.read(path)
  if (!stored) throw new Problem(409, 'BACKUP_DAMAGED', `${target.addressOf(path)} is missing.`)
  const hasher = new Bun.CryptoHasher('sha256')
  let read = 0
  for await (const chunk of stored) {
    hasher.update(chunk)
    read += chunk.byteLength
  }
  if (read !== bytes || hasher.digest('hex') !== sha256)
    throw new Problem(409, 'BACKUP_DAMAGED', `${target.addressOf(path)} is torn or was changed.`)
}

/** The contents that a backup needs, and how many of them the store of the files lacked when it was made. */
type Listing = { place: string; names: Set<string>; lacking: number }

/** The name of a content that is not encrypted is its hash. Of an encrypted one, a backup reads some back each time. */
async function verifyContents(target: BackupTarget, tenant: string, listings: Listing[], { problems }: VerifiedTenant) {
  const folder = joinPath(tenant, CONTENTS_FOLDER)
  const stored = new Set(listings.length ? await target.list(folder) : [])
  for (const { place, names, lacking } of listings) {
    const missing = [...names].filter((name) => !stored.has(name))
    if (missing.length > lacking) problems.push(`${place} lacks ${missing.length - lacking} of its contents of files.`)
  }
  for (const name of new Set(listings.flatMap(({ names }) => [...names])).intersection(stored)) {
    const path = joinPath(folder, name)
    if (!name.endsWith('.age') && !(await isContentSound(target, path, name, undefined)))
      problems.push(`${target.addressOf(path)} is torn or was changed. Remove it, and the next backup stores it again.`)
  }
}

async function verifyLog(target: BackupTarget, tenant: string, based: Set<string>, verified: VerifiedTenant) {
  const folder = joinPath(tenant, LOG_FOLDER)
  const generations = orderFolders(await target.list(folder))
  for (const { name: generation } of generations) {
    const path = joinPath(folder, generation)
    const segments = (await target.list(path)).flatMap((name) => {
      const parsed = parseSegmentName(name)
      return parsed ? [{ name, ...parsed }] : []
    })
    segments.sort((one, other) => one.number - other.number)
    if (!segments.length) continue
    // Backups of earlier ones may have been removed.
    if (generation === generations.at(-1)!.name && !based.has(generation))
      verified.problems.push(`${target.addressOf(path)} has no backup from which it goes on.`)
    for (const [place, { number }] of segments.entries())
      if (place && number !== segments[place - 1]!.number + 1)
        verified.problems.push(`${target.addressOf(path)} lacks segment ${segments[place - 1]!.number + 1}.`)
    for (const { name } of segments) {
      const problem = await findSegmentProblem(target, joinPath(path, name))
      if (problem) verified.problems.push(problem)
    }
    verified.until = toIsoString(segments.at(-1)!.last)
  }
}

/** A segment begins with its hash; one that is encrypted is only looked at whether it is whole. */
async function findSegmentProblem(target: BackupTarget, path: string): Promise<string | undefined> {
  const stored = await target.read(path)
  const bytes = stored && Buffer.from(await new Response(stored as never).arrayBuffer())
  const torn = `${target.addressOf(path)} is torn or was changed.`
  if (!bytes?.length) return torn
  if (path.endsWith('.age')) return bytes.subarray(0, 21).toString() === 'age-encryption.org/v1' ? undefined : torn
  try {
    const content = Buffer.from(await Bun.zstdDecompress(bytes))
    const hash = new Bun.CryptoHasher('sha256').update(content.subarray(32)).digest()
    return hash.equals(content.subarray(0, 32)) ? undefined : torn
  } catch {
    return torn // it cannot be decompressed
  }
}

function toSentence(error: unknown): string {
  if (error instanceof Problem && error.status < 500) return error.message
  throw error
}
