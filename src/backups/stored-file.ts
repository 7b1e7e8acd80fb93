import { getErrorChain } from '../core/log'
import { Problem } from '../core/problem'
import { joinPath } from './backup-list'
import type { BackupEncryption } from './encryption'
import type { BackupFile } from './manifest'
import type { BackupTarget } from './targets/backup-target'
import { targetFailedProblem } from './targets/target-failure'

const ATTEMPT_DELAYS_MS = [1_000, 5_000, 15_000]
/** Codes of failures of a folder, such as one on a network, that another attempt may mend. Stores repeat by themselves. */
const PASSING_FAILURES = [
  ...['EIO', 'EAGAIN', 'EBUSY', 'EINTR', 'EMFILE', 'ENFILE', 'ETIMEDOUT', 'ESTALE', 'ECONNRESET'],
  ...['ENETDOWN', 'ENETUNREACH', 'EHOSTDOWN', 'EHOSTUNREACH', 'StoredOtherwise'],
]

type Digest = { bytes: number; sha256: string }
type ByteTransform = ReadableWritablePair<Uint8Array, Uint8Array>

/**
 * Stores a file of a backup, compressed by zstd and encrypted, and reads it back to compare it. A failure is retried.
 * @throws 502 BACKUP_TARGET_FAILED when that does not help
 */
export async function storeFile(
  target: BackupTarget,
  folder: string,
  file: { name: string; open(): ReadableStream<Uint8Array>; isCompressed?: boolean },
  encryption: Pick<BackupEncryption, 'encrypt'> | undefined,
): Promise<BackupFile> {
  const name = `${file.name}${file.isCompressed === false ? '' : '.zst'}${encryption ? '.age' : ''}`
  return retryStoring(target, folder, async () => {
    const [content, stored] = [new StreamDigest(), new StreamDigest()]
    let stream = file.open().pipeThrough(content.stream())
    if (file.isCompressed !== false) stream = stream.pipeThrough(await createCompression())
    if (encryption) stream = await encryption.encrypt(stream)
    await target.write(`${folder}/${name}`, stream.pipeThrough(stored.stream()))
    await assertStored(target, `${folder}/${name}`, stored.digest())
    return { name, ...stored.digest(), content: content.digest() }
  })
}

// Level 1 takes half the time of the default, and stores databases in less room.
async function createCompression() {
  const [{ Duplex }, { constants, createZstdCompress }] = await Promise.all([
    import('node:stream'),
    import('node:zlib'),
  ])
  const params = { [constants.ZSTD_c_compressionLevel]: 1 }
  return Duplex.toWeb(createZstdCompress({ chunkSize: 1 << 20, params })) as ByteTransform
}

/** Stores bytes as they are. @throws 502 BACKUP_TARGET_FAILED */
export const storeBytes = (target: BackupTarget, folder: string, name: string, bytes: Uint8Array): Promise<void> =>
  retryStoring(target, folder, async () => {
    const digest = new StreamDigest()
    digest.add(bytes)
    await target.write(`${folder}/${name}`, new Blob([bytes]).stream())
    await assertStored(target, `${folder}/${name}`, digest.digest())
  })

/** Stores bytes that are compressed by zstd, encrypted. @throws 502 BACKUP_TARGET_FAILED */
export async function storeCompressed(
  target: BackupTarget,
  folder: string,
  name: string,
  compressed: Uint8Array,
  encryption: BackupEncryption | undefined,
): Promise<void> {
  if (!encryption) return storeBytes(target, folder, `${name}.zst`, compressed)
  const encrypted = await new Response(await encryption.encrypt(new Blob([compressed]).stream())).bytes()
  return storeBytes(target, folder, `${name}.zst.age`, encrypted)
}

/** What was read back is not what was written. */
class StoredOtherwise extends Error {
  readonly code = 'StoredOtherwise'
}

async function assertStored(target: BackupTarget, path: string, { bytes, sha256 }: Digest) {
  const stream = await target.read(path)
  const read = new StreamDigest()
  for await (const chunk of stream ?? []) read.add(chunk)
  if (read.digest().sha256 !== sha256)
    throw new StoredOtherwise(`The stored file differs from what was written (${bytes} bytes).`)
}

async function retryStoring<T>(target: BackupTarget, folder: string, store: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt++)
    try {
      return await store()
    } catch (error) {
      const delay = ATTEMPT_DELAYS_MS[attempt]
      const cause = getErrorChain(error).at(-1) as Error & { code?: string }
      if (delay === undefined || !PASSING_FAILURES.includes(`${cause.code}`))
        throw targetFailedProblem(target.addressOf(folder), 'written', cause)
      await Bun.sleep(delay)
    }
}

/**
 * Yields the content of a stored file, and throws at its end when it is not what was stored.
 * @throws 409 BACKUP_DAMAGED for a missing, torn or changed file
 * @throws 403 WRONG_BACKUP_KEY when it cannot be decrypted
 */
export async function* readStoredFile(
  target: BackupTarget,
  folder: string,
  file: BackupFile,
  decrypt?: Decrypt,
): AsyncGenerator<Uint8Array> {
  const path = joinPath(folder, file.name)
  const address = target.addressOf(path)
  const stored = await target.read(path)
  if (!stored) throw new Problem(409, 'BACKUP_DAMAGED', `${address} is missing.`)
  const [storedDigest, contentDigest] = [new StreamDigest(), new StreamDigest()]
  try {
    for await (const chunk of await decodeStored(stored.pipeThrough(storedDigest.stream()), file.name, decrypt)) {
      contentDigest.add(chunk)
      yield chunk
    }
  } catch (cause) {
    if (cause instanceof Problem) throw cause
    throw backupDamaged(address, cause)
  }
  if (!isSame(storedDigest.digest(), file) || !isSame(contentDigest.digest(), file.content))
    throw backupDamaged(address)
}

type Decrypt = (content: ReadableStream<Uint8Array>) => Promise<ReadableStream<Uint8Array>>

/** Returns the content of a stored file, whose name says how it is stored. */
export async function decodeStored(
  stored: ReadableStream<Uint8Array>,
  name: string,
  decrypt?: Decrypt,
): Promise<ReadableStream<Uint8Array>> {
  const stream = decrypt ? await decrypt(stored) : stored
  if (!/\.zst(\.age)?$/.test(name)) return stream
  return stream.pipeThrough<Uint8Array>(new DecompressionStream('zstd') as ByteTransform)
}

const backupDamaged = (address: string, cause?: unknown) =>
  new Problem(409, 'BACKUP_DAMAGED', `${address} is torn or was changed. Use another backup.`, { cause })

const isSame = (one: Digest, other: Digest) => one.bytes === other.bytes && one.sha256 === other.sha256

/** Counts and hashes the bytes of a stream. */
class StreamDigest {
  #hasher = new Bun.CryptoHasher('sha256')
  #bytes = 0
  #digest?: Digest

  add(chunk: Uint8Array) {
    this.#hasher.update(chunk)
    this.#bytes += chunk.length
  }

  /** Returns a stream that passes everything on unchanged. */
  stream() {
    return new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        this.add(chunk)
        controller.enqueue(chunk)
      },
    })
  }

  /** Returns the result. Nothing may be added afterwards. */
  digest(): Digest {
    this.#digest ??= { bytes: this.#bytes, sha256: this.#hasher.digest('hex') }
    return this.#digest
  }
}
