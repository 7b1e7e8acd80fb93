import type { TLSOptions } from 'bun'
import { config } from '../config'
import { logError } from '../core/log'
import { getLoadedFiles, loadCertificateFiles, watchCertificateFiles } from './certificate-files'
import { listIssuedCertificates } from './certificates'
import type { KeyPair } from './key-pair'
import { createPlaceholder } from './placeholder'

const CHECK_INTERVAL_MS = 2_000 // until a certificate is served that another server has ordered
const RETRY_MS = 60_000 // after certificates could not be loaded

let placeholder: Promise<Pick<KeyPair, 'chain' | 'key'>> | undefined

/**
 * Returns the certificates that the server offers by the name that a client asks for. The first one is offered for every
 * other name: that of the first file, else one that no client accepts.
 * @throws ConfigError when files cannot be used at the start
 */
export async function listServedCertificates(): Promise<TLSOptions[]> {
  const [pairs, issued] = await listSources()
  const fromFiles = pairs.flatMap((pair) => pair.hosts.map((host) => toOptions(pair, host)))
  const named = new Set(fromFiles.map(({ serverName }) => serverName))
  // What the operator has put into a file prevails.
  const ordered = issued.filter(({ host }) => !named.has(host)).map((one) => toOptions(one, one.host))
  placeholder ??= pairs[0] ? undefined : createPlaceholder()
  const fallback = pairs[0] ?? (await placeholder)
  return [...(fallback ? [toOptions(fallback)] : []), ...fromFiles, ...ordered]
}

/** Returns the certificates of files and those that were ordered. Both are the same arrays until they change. */
const listSources = async () =>
  [getLoadedFiles().pairs, config.ATOLL_ACME === 'on' ? await listIssuedCertificates() : NO_CERTIFICATES] as const
const NO_CERTIFICATES: Awaited<ReturnType<typeof listIssuedCertificates>> = []

const toOptions = ({ chain, key }: Pick<KeyPair, 'chain' | 'key'>, serverName?: string): TLSOptions => ({
  ...{ cert: chain, key },
  ...(serverName && { serverName }),
})

/** Loads the certificates of a server that speaks HTTPS. @throws ConfigError when files cannot be used */
export async function loadServedCertificates(): Promise<TLSOptions[]> {
  await loadCertificateFiles()
  return listServedCertificates()
}

/**
 * Calls `onChange` with all certificates soon after one of them has changed, in a file or in the registry. Returns a
 * function that stops it.
 */
export function watchServedCertificates(
  initial: TLSOptions[],
  onChange: (options: TLSOptions[]) => Promise<void>,
): () => void {
  let latest = fingerprint(initial)
  let seen: readonly unknown[] = []
  let isChecking = false
  let isStopped = false
  let retryAt = 0
  const check = async () => {
    if (isChecking || performance.now() < retryAt) return
    isChecking = true
    try {
      const sources = await listSources()
      if (sources.every((source, index) => source === seen[index])) return
      seen = sources
      const options = await listServedCertificates()
      const next = fingerprint(options)
      if (next === latest || isStopped) return
      await onChange(options)
      latest = next
    } catch (cause) {
      seen = [] // for another attempt
      retryAt = performance.now() + RETRY_MS
      logError('CERTIFICATES_NOT_LOADED', { cause })
    } finally {
      isChecking = false
    }
  }
  const stopFiles = watchCertificateFiles(() => void check())
  const timer = setInterval(check, CHECK_INTERVAL_MS).unref()
  return () => {
    isStopped = true
    stopFiles()
    clearInterval(timer)
  }
}

/** A private key belongs to one certificate, so the certificates and their names say all. */
const fingerprint = (options: TLSOptions[]) =>
  Bun.hash(options.map(({ serverName, cert }) => `${serverName} ${cert}`).join('\n'))
