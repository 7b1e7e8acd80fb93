import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { tenantMigrations } from '../../migrations'
import { toBodyStream } from '../core/body-stream'
import { joinLines, splitLines } from '../core/lines'
import { notFound, Problem } from '../core/problem'
import { type CopiedSecret, createSecretOpener, createSecretSealer } from '../platform/vault/vault'
import { measureDatabase } from '../tenancy/database-size'
import { databases } from '../tenancy/databases'
import { ensureSecrets } from '../tenancy/installation-keys'
import { locationOf } from '../tenancy/placement'
import { registry } from '../tenancy/registry'
import { prepareRestoredTenant, serveStagedDatabase } from '../tenancy/restored-tenants'
import { createStagedFolder } from '../tenancy/staged-folder'
import { tenants } from '../tenancy/tables'
import { holdContents } from './contents/content-hold'
import {
  type ContentOrder,
  ContentPlacer,
  countContent,
  limitBytes,
  type PlacedContents,
} from './contents/content-placement'
import { ExportReader, writeContents } from './contents/export-stream'
import { ContentCollector, listContentsOfFile } from './contents/named-contents'
import { passphraseCost } from './passphrase-cost'
import { changeRows, createDatabaseOfRows, type RowFilter, writeRows } from './rows'
import { prepareStagedDatabase } from './staged-database'
import type { BackupControl } from './tenant-backup'

/**
 * What was exported: the number of rows, of contents of files, and of secrets that are not part of it. `missing` are the
 * names of files whose content the store lacks.
 */
export type ExportSummary = {
  tenant: string
  rows: number
  files: PlacedContents
  omittedSecrets: number
  encrypted: boolean
}

/**
 * Writes all rows of a tenant, which may be in use, as a stream that any engine can take: lines of JSON, and after
 * them the contents of files, compressed by zstd. With a passphrase it is encrypted by age and contains the secrets, which are left out otherwise.
 * @throws 404 TENANT_NOT_FOUND, 507 STORAGE_FULL
 */
export async function exportTenant(
  id: string,
  passphrase: string | undefined,
  write: (content: ReadableStream<Uint8Array>) => Promise<unknown>,
  control: BackupControl = {},
): Promise<ExportSummary> {
  const entry = (await registry.db.select().from(tenants).where(eq(tenants.id, id)).get()) ?? notFound('tenant')
  using staged = createStagedFolder((await measureDatabase(entry)) ?? 0)
  const file = join(staged.path, 'rows.jsonl')
  await using hold = await holdContents(entry)
  const source = await databases.openTenantCopy(locationOf(entry), tenantMigrations)
  const omitted = { count: 0 }
  try {
    const open = await createSecretOpener(id)
    const [collector, keepSecret] = [new ContentCollector(), createSecretFilter(passphrase ? open : undefined, omitted)]
    const filter: RowFilter = (table, row) => collector.filter(table, row) && keepSecret(table, row)
    const onRows = (count: number) => control.onProgress?.(`copied ${count} rows`)
    const counts = await writeRows(id, source, Bun.file(file).writer(), { onRows, signal: control.signal, filter })
    const files: PlacedContents = { count: 0, missing: [] }
    const readAll = async function* () {
      yield* passphrase ? readWithSecrets(file, open) : Bun.file(file).stream()
      yield* writeContents(id, collector.list(), hold, (content, isThere) => countContent(files, content, isThere))
    }
    let content = toBodyStream(readAll())
    content = content.pipeThrough<Uint8Array>(new CompressionStream('zstd') as ByteTransform)
    if (passphrase) {
      const { Encrypter } = await import('age-encryption')
      const encrypter = new Encrypter()
      encrypter.setScryptWorkFactor(passphraseCost.workFactor)
      encrypter.setPassphrase(passphrase)
      content = await encrypter.encrypt(content)
    }
    await write(content)
    const rows = Object.values(counts).reduce((sum, count) => sum + count, 0)
    return { tenant: id, rows, files, omittedSecrets: omitted.count, encrypted: !!passphrase }
  } finally {
    await source.close()
  }
}

type ByteTransform = ReadableWritablePair<Uint8Array, Uint8Array>
type OpenSecret = Awaited<ReturnType<typeof createSecretOpener>>

/** Returns the filter that leaves out secrets that cannot be decrypted, or all without `open`, and counts those. */
function createSecretFilter(open: OpenSecret | undefined, omitted: { count: number }): RowFilter {
  return (table, row) => {
    if (table !== 'sealed' || open?.(toSecret(row)) !== undefined) return row
    omitted.count++
  }
}

/** Returns the staged rows with readable secrets, which are never on the disk in that form. */
function readWithSecrets(file: string, open: OpenSecret): ReadableStream<Uint8Array> {
  const openRow = (row: Record<string, unknown>) => ({ ...row, text: open(toSecret(row)) })
  return toBodyStream(joinLines(changeRows(splitLines(Bun.file(file).stream()), { sealed: openRow })))
}

const toSecret = (row: Record<string, unknown>) => ({ ...(row as CopiedSecret), key: Number(row.key) })

/**
 * Creates a tenant from the stream of an export. One of another id than the exported one gets no credentials.
 * @throws 409 TENANT_EXISTS, BACKUP_DAMAGED or BACKUP_TOO_NEW
 * @throws 403 WRONG_BACKUP_KEY, 400 INVALID_INPUT for an invalid id
 */
export async function importTenant(
  content: ReadableStream<Uint8Array>,
  as: string,
  passphrase: string | undefined,
): Promise<{ tenant: string; rows: number; files: PlacedContents; ms: number }> {
  const startedAt = performance.now()
  const created = await prepareRestoredTenant(as, false)
  await ensureSecrets()
  using staged = createStagedFolder(0)
  const { stream, isEncrypted } = await decryptExport(content, passphrase)
  const reader = new ExportReader(decompress(stream))
  const lines = splitLines(reader.readRows())
  const { tenant, rows } = await createDatabaseOfRows(isEncrypted ? await sealSecrets(lines) : lines, staged.locate(''))
  const contents = await listContentsOfFile(staged.file)
  const files = await importContents(reader, { tenant: as, contents, staged, control: {} })
  await prepareStagedDatabase(staged, tenant, created, { secrets: isEncrypted ? 'kept' : 'dropped' })
  await serveStagedDatabase(created, staged, { event: 'tenant-imported', metadata: {} })
  return { tenant: as, rows, files, ms: Math.round(performance.now() - startedAt) }
}

/** Takes the contents that the rows name out of an export, to its end. */
async function importContents(reader: ExportReader, order: ContentOrder): Promise<PlacedContents> {
  const wanted = new Map(order.contents.map((content) => [content.sha256, content]))
  const placer = new ContentPlacer(order.tenant, order.staged)
  let count = 0
  for await (const { sha256, parts } of reader.readContents()) {
    const content = wanted.get(sha256)
    if (!content || !(await placer.place(sha256, limitBytes(toBodyStream(parts), content.size)))) continue
    wanted.delete(sha256)
    count++
  }
  return { count, missing: [...wanted.values()].flatMap(({ file }) => file ?? []) }
}

/** Encrypts the readable secrets of an export before they are stored: a database file keeps parts of replaced values. */
async function sealSecrets(lines: AsyncIterable<string>): Promise<AsyncIterable<string>> {
  const seal = await createSecretSealer()
  return changeRows(lines, {
    sealed: (row, tenant) => seal(row as CopiedSecret, tenant),
    // The oldest key that may be used was one of the other installation.
    versions: (row) => (row.topic === 'vault' ? { ...row, version: 0 } : row),
  })
}

const AGE_MAGIC = 'age-encryption.org/v1'

async function decryptExport(content: ReadableStream<Uint8Array>, passphrase: string | undefined) {
  const [peeked, stream] = content.tee()
  const reader = peeked.getReader()
  const { value } = await reader.read()
  await reader.cancel()
  const isEncrypted = Buffer.from(value ?? []).toString('latin1', 0, AGE_MAGIC.length) === AGE_MAGIC
  if (!isEncrypted) return { stream, isEncrypted }
  if (!passphrase)
    throw new Problem(
      403,
      'WRONG_BACKUP_KEY',
      'This export is encrypted. Pass its passphrase by --passphrase-file or ATOLL_BACKUP_PASSPHRASE.',
    )
  const { Decrypter } = await import('age-encryption')
  const decrypter = new Decrypter()
  decrypter.addPassphrase(passphrase)
  const decrypted = await decrypter.decrypt(stream).catch((cause) => {
    throw new Problem(403, 'WRONG_BACKUP_KEY', 'The passphrase does not decrypt this export.', { cause })
  })
  return { stream: decrypted as ReadableStream<Uint8Array>, isEncrypted }
}

const MAX_RATIO = 1_000 // no rows with ids of their own are compressed so well
const FREE_BYTES = 64 << 20 // what is decompressed whatever the ratio

/** @throws 409 BACKUP_DAMAGED for a stream that is torn, or no export */
async function* decompress(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    const counted = { in: 0, out: 0 }
    const countInput = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        counted.in += chunk.length
        controller.enqueue(chunk)
      },
    })
    const decompressed = stream
      .pipeThrough(countInput)
      .pipeThrough<Uint8Array>(new DecompressionStream('zstd') as ByteTransform)
    for await (const chunk of decompressed) {
      counted.out += chunk.length
      if (counted.out > FREE_BYTES && counted.out > counted.in * MAX_RATIO) throw new Error('It is a bomb.')
      yield chunk
    }
  } catch (cause) {
    throw new Problem(409, 'BACKUP_DAMAGED', 'The file is torn, or it is not an export of Atoll.', { cause })
  }
}
