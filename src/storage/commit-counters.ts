import { closeSync, constants, fstatSync, mkdirSync, openSync, realpathSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { BoundedMap } from '../core/bounded-map'
import { ConfigError } from '../core/config-error'
import { sha256 } from '../core/crypto'

const COUNTER_COUNT = 4_096 // names that share a counter only cause needless checks
const MEMORY_BYTES = COUNTER_COUNT * Uint32Array.BYTES_PER_ELEMENT

/**
 * Counts commits by what is written to, a file or the data of a tenant in PostgreSQL, in memory that threads or processes
 * share. A client may send its next request to another process, so each commit is counted before it is acknowledged.
 */
export class CommitCounters {
  #shared?: Uint32Array
  #own = new Uint32Array(COUNTER_COUNT)

  /** `open` returns the memory; it is called with the first use. */
  constructor(private open: () => ArrayBufferLike = () => new SharedArrayBuffer(MEMORY_BYTES)) {}

  /** The memory, for other threads of this process. */
  get memory(): ArrayBufferLike {
    return this.#counters.buffer
  }

  /** Shares the memory of another thread. */
  join(memory: ArrayBufferLike) {
    this.#shared = new Uint32Array(memory)
  }

  /** Counts a commit of this thread. */
  add(name: string) {
    const counter = counterOf(name)
    this.#own[counter]!++
    Atomics.add(this.#counters, counter, 1)
  }

  /** Returns a number that changes with the commits of others, and not with those of this thread. */
  countOfOthers(name: string): number {
    const counter = counterOf(name)
    return (Atomics.load(this.#counters, counter) - this.#own[counter]!) >>> 0
  }

  get #counters(): Uint32Array {
    this.#shared ??= new Uint32Array(this.open())
    return this.#shared
  }
}

const MAX_KNOWN_NAMES = 50_000
const countersByName = new BoundedMap<string, number>(MAX_KNOWN_NAMES)

/** Each cache access reads a counter, so names are hashed once. */
function counterOf(name: string): number {
  const known = countersByName.get(name)
  if (known !== undefined) return known
  const counter = Bun.hash.crc32(name) % COUNTER_COUNT
  countersByName.set(name, counter)
  return counter
}

const SHARED_MEMORY = '/dev/shm'

/** Returns the path of the memory that the processes serving a folder share. */
export const sharedMemoryPath = (folder: string) =>
  join(SHARED_MEMORY, `atoll-${sha256(`${realpathSync(folder)} ${process.getuid?.()}`).slice(0, 32)}`)

/** Removes the shared memory of a folder that is no longer served. */
export const removeSharedMemory = (folder: string) => rmSync(sharedMemoryPath(folder), { force: true })

/**
 * Returns the memory that the processes serving a folder share, on Linux. It is not in the folder itself, because a full
 * disk kills a process that writes to mapped memory.
 * @throws ConfigError when another user has taken its name
 */
export function mapSharedMemory(folder: string): ArrayBufferLike {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const path = sharedMemoryPath(folder)
  const descriptor = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
  try {
    const { uid, mode, size } = fstatSync(descriptor)
    if (uid !== process.getuid?.() || mode & 0o077) throw new ConfigError(`${path} belongs to another user. Remove it.`)
    // All of it is allocated before it is mapped.
    if (size < MEMORY_BYTES) writeSync(descriptor, Buffer.alloc(MEMORY_BYTES - size), 0, MEMORY_BYTES - size, size)
  } finally {
    closeSync(descriptor)
  }
  return Bun.mmap(path).buffer
}
