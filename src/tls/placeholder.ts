import { DAY_MS } from '../core/clock'
import type { KeyPair } from './key-pair'

const NAME = 'no-certificate.invalid'
const VALIDITY_MS = 3_650 * DAY_MS

/** Returns a certificate that no client accepts, for names that have none: it reveals nothing about the others. */
export async function createPlaceholder(): Promise<Pick<KeyPair, 'chain' | 'key'>> {
  await import('reflect-metadata') // before the library, which needs it
  const { PemConverter, SubjectAlternativeNameExtension, X509CertificateGenerator } = await import('@peculiar/x509')
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const certificate = await X509CertificateGenerator.createSelfSigned({
    ...{ name: `CN=${NAME}`, keys, signingAlgorithm: algorithm },
    ...{ notBefore: new Date(Date.now() - DAY_MS), notAfter: new Date(Date.now() + VALIDITY_MS) },
    extensions: [new SubjectAlternativeNameExtension([{ type: 'dns', value: NAME }])],
  })
  const key = PemConverter.encode(await crypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY')
  return { chain: certificate.toString('pem'), key }
}
