import { watch } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { config } from '../config'
import { ConfigError } from '../core/config-error'
import { log, logError } from '../core/log'
import { parseFileList } from '../core/setting-types'
import { type KeyPair, parseKeyPair } from './key-pair'

const CHECK_INTERVAL_MS = 60_000 // file systems that tell of no changes are read this often
const SETTLE_MS = 500 // after a change, until the files are read
const HALF_WRITTEN_MS = 3_000 // a certificate and its key are replaced one after the other

let loaded: KeyPair[] = []
let problem: string | undefined

/**
 * Reads the certificates of `ATOLL_TLS_CERT`.
 * @throws ConfigError that names the file and says what is wrong with it
 */
export async function readCertificateFiles(): Promise<KeyPair[]> {
  const [certificates, keys] = [parseFileList(config.ATOLL_TLS_CERT), parseFileList(config.ATOLL_TLS_KEY)]
  return Promise.all(certificates.map((file, index) => readPair(file, keys[index] ?? '')))
}

async function readPair(file: string, keyFile: string): Promise<KeyPair> {
  const [chain, key] = [await readPem(file, 'ATOLL_TLS_CERT'), await readPem(keyFile, 'ATOLL_TLS_KEY')]
  try {
    return parseKeyPair(chain, key)
  } catch (cause) {
    throw new ConfigError(`${file} and ${keyFile} cannot be used: ${(cause as Error).message}.`, { cause })
  }
}

const readPem = (file: string, setting: string) =>
  readFile(file, 'utf8').catch((cause) => {
    throw new ConfigError(`"${file}" of ${setting} cannot be read: ${(cause as { code?: string }).code}.`, { cause })
  })

/** Returns the certificates of files that are served, and why newer files are not. */
export const getLoadedFiles = () => ({ pairs: loaded, problem })

/** Reads the files for the first time. @throws ConfigError */
export async function loadCertificateFiles() {
  loaded = await readCertificateFiles()
  problem = undefined
}

/**
 * Calls `onChange` whenever the files have other certificates than before. Broken files are reported, and those that
 * were read before stay in use. Returns a function that stops it.
 */
export function watchCertificateFiles(onChange: () => void): () => void {
  let timer: Timer | undefined
  const check = async (isRepeated = false) => {
    const outcome = await readCertificateFiles().catch((error: Error) => error)
    if (!(outcome instanceof Error)) {
      if (problem) log.info({ event: 'certificate-files-repaired' })
      problem = undefined
      if (fingerprint(outcome) === fingerprint(loaded)) return
      loaded = outcome
      log.info({ event: 'certificate-files-loaded', hosts: outcome.flatMap(({ hosts }) => hosts) })
      return onChange()
    }
    if (!isRepeated) return checkSoon(HALF_WRITTEN_MS, true)
    if (problem !== outcome.message) logError('TLS_FILES_BROKEN', { message: outcome.message })
    problem = outcome.message
  }
  const checkSoon = (delay: number, isRepeated = false) => {
    clearTimeout(timer)
    timer = setTimeout(() => void check(isRepeated), delay).unref()
  }
  const interval = setInterval(() => void check(problem !== undefined), CHECK_INTERVAL_MS).unref()
  const watchers = listFolders().flatMap((folder) => watchFolder(folder, () => checkSoon(SETTLE_MS)) ?? [])
  return () => {
    clearTimeout(timer)
    clearInterval(interval)
    for (const watcher of watchers) watcher.close()
  }
}

const fingerprint = (pairs: KeyPair[]) => JSON.stringify(pairs)

/** The folders are watched, because renewals replace files and links. */
const listFolders = () => [
  ...new Set([config.ATOLL_TLS_CERT, config.ATOLL_TLS_KEY].flatMap(parseFileList).map((file) => dirname(file))),
]

function watchFolder(folder: string, onEvent: () => void) {
  try {
    return watch(folder, { persistent: false }, onEvent).on('error', () => {}) // the interval reads the files as well
  } catch {
    // The interval reads the files as well.
  }
}
