import { closeSync, constants, fstatSync, mkdirSync, openSync, realpathSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '../../../core/config-error'
import { sha256 } from '../../../core/crypto'

const COUNTERS = 4_096 // two files may share one, which only lets a reader look for changes in vain
const BYTES = COUNTERS * Uint32Array.BYTES_PER_ELEMENT

/**
 * Counts the commits to files in memory that threads or processes share. Whoever gets the answer of one of them may ask
 * another one, so each counts a commit before it is acknowledged.
 */
export class CommitCounters {
  #shared?: Uint32Array
  #own = new Uint32Array(COUNTERS)

  /** `open` returns the memory; it is called with the first use. */
  constructor(private open: () => ArrayBufferLike = () => new SharedArrayBuffer(BYTES)) {}

  /** The memory, for other threads of this process. */
  get memory(): ArrayBufferLike {
    return this.#counters.buffer
  }

  /** Shares the memory of another thread. */
  join(memory: ArrayBufferLike) {
    this.#shared = new Uint32Array(memory)
  }

  /** Counts a commit of this thread. */
  add(file: string) {
    const counter = counterOf(file)
    this.#own[counter]!++
    Atomics.add(this.#counters, counter, 1)
  }

  /** Returns a number that changes with the commits of others, and not with those of this thread. */
  countOfOthers(file: string): number {
    const counter = counterOf(file)
    return (Atomics.load(this.#counters, counter) - this.#own[counter]!) >>> 0
  }

  get #counters(): Uint32Array {
    this.#shared ??= new Uint32Array(this.open())
    return this.#shared
  }
}

const counterOf = (file: string) => Bun.hash.crc32(file) % COUNTERS

const SHARED_MEMORY = '/dev/shm'

/** Returns where the memory is that the processes share that serve a folder. */
export const sharedMemoryPath = (folder: string) =>
  join(SHARED_MEMORY, `atoll-${sha256(`${realpathSync(folder)} ${process.getuid?.()}`).slice(0, 32)}`)

/** Removes what `mapSharedMemory` has made for a folder, once no process serves it. */
export const removeSharedMemory = (folder: string) => rmSync(sharedMemoryPath(folder), { force: true })

/**
 * Returns memory that the processes share that serve a folder, on Linux. It is not in the folder, because a full disk
 * ends a process that writes to mapped memory.
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
    if (size < BYTES) writeSync(descriptor, Buffer.alloc(BYTES - size), 0, BYTES - size, size)
  } finally {
    closeSync(descriptor)
  }
  return Bun.mmap(path).buffer
}
