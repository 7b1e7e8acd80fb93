import { config, isTlsServer } from '../config'
import { DAY_MS, now, toIsoString } from '../core/clock'
import { readCertificateFiles } from '../tls/certificate-files'
import { list } from '../tls/certificates'
import type { KeyPair } from '../tls/key-pair'
import type { Check } from './checks'

const FILE_EXPIRY_WARNING_MS = 14 * DAY_MS
const MAX_LISTED_PROBLEMS = 20

/** Checks the certificates of HTTPS: whether the files can be used and last, and which orders fail. */
export async function checkCertificates(): Promise<Check[]> {
  if (!isTlsServer()) return []
  return [...(await checkFiles()), ...(config.ATOLL_ACME === 'on' ? await checkOrders() : [])]
}

const checkFiles = () =>
  readCertificateFiles().then(
    (pairs) => pairs.map(checkFile),
    (error): Check[] => [{ check: 'certificate files', ok: false, message: (error as Error).message }],
  )

function checkFile({ hosts, expires }: KeyPair): Check {
  const check = `certificate file of ${hosts.join(', ') || 'no host'}`
  const message = `expires at ${toIsoString(expires)}`
  const ok = expires - now() > FILE_EXPIRY_WARNING_MS
  return { check, ok, message: ok ? message : `${message}; replace it, and the server reloads it` }
}

async function checkOrders(): Promise<Check[]> {
  const ordered = (await list()).filter(({ source }) => source === 'acme')
  const failing = ordered.filter(({ state }) => state === 'failing')
  const issued = ordered.filter(({ state }) => state === 'issued').length
  const waiting = ordered.length - issued - failing.length
  const summary = `${issued} issued, ${waiting} to be ordered, ${failing.length} failing`
  return [
    { check: 'ordered certificates', ok: true, message: summary },
    ...failing
      .slice(0, MAX_LISTED_PROBLEMS)
      .map(({ host, problem, next }) => ({
        check: `certificate of ${host}`,
        ok: false,
        message: `${problem} The next order is at ${next}.`,
      })),
  ]
}
