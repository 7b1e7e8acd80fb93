import { closeSync, ftruncateSync, mkdirSync, openSync } from 'node:fs'
import { join } from 'node:path'

const COUNTERS = 4_096 // two files may share one, which only lets a process look for changes in vain

/**
 * Counts the commits to the files of a folder that several processes serve, in memory that they share. Whoever gets the
 * answer of a process may ask another one, so each tells its commits before it answers.
 */
export class CommitCounters {
  #shared?: Uint32Array
  #own = new Uint32Array(COUNTERS)

  constructor(private folder: string) {}

  /** Counts a commit of this process. */
  add(file: string) {
    const counter = counterOf(file)
    this.#own[counter]!++
    Atomics.add(this.#open(), counter, 1)
  }

  /** Returns a number that changes with the commits of other processes, and not with those of this one. */
  countOfOthers(file: string): number {
    const counter = counterOf(file)
    return (Atomics.load(this.#open(), counter) - this.#own[counter]!) >>> 0
  }

  #open(): Uint32Array {
    this.#shared ??= mapCounters(this.folder)
    return this.#shared
  }
}

function mapCounters(folder: string): Uint32Array {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, 'commits.shm')
  const descriptor = openSync(path, 'a', 0o600)
  ftruncateSync(descriptor, COUNTERS * Uint32Array.BYTES_PER_ELEMENT)
  closeSync(descriptor)
  return new Uint32Array(Bun.mmap(path).buffer)
}

const counterOf = (file: string) => Bun.hash.crc32(file) % COUNTERS
