import type { KeyObject, X509Certificate } from 'node:crypto'

/** A certificate with its chain and its private key (PEM), and what it says. */
export type KeyPair = {
  chain: string
  key: string
  /** The names that it is for, such as `app.example.com` and `*.example.com`. */
  hosts: string[]
  issuer: string
  issued: number
  expires: number
}

/**
 * Reads a certificate and its private key (PEM).
 * @throws Error with a sentence that says what is wrong with them
 */
export function parseKeyPair(chain: string, key: string): KeyPair {
  const certificate = parseCertificate(chain)
  if (!certificate.checkPrivateKey(parseKey(key))) throw new Error('the private key belongs to another certificate')
  return {
    ...{ chain, key, hosts: namesOf(certificate), issuer: issuerOf(certificate) },
    issued: Date.parse(certificate.validFrom),
    expires: Date.parse(certificate.validTo),
  }
}

function parseCertificate(chain: string): X509Certificate {
  try {
    const { X509Certificate } = process.getBuiltinModule('node:crypto')
    return new X509Certificate(chain)
  } catch (cause) {
    throw new Error('the certificate is not a PEM text that begins with the certificate of the host', { cause })
  }
}

function parseKey(key: string): KeyObject {
  try {
    return process.getBuiltinModule('node:crypto').createPrivateKey(key)
  } catch (cause) {
    throw new Error('the private key is not a PEM text without a passphrase', { cause })
  }
}

const namesOf = ({ subjectAltName = '' }: X509Certificate) =>
  subjectAltName.split(', ').flatMap((name) => (name.startsWith('DNS:') ? [name.slice(4).toLowerCase()] : []))

/** Returns the organization or else the name of the authority. */
function issuerOf({ issuer }: X509Certificate): string {
  const part = (name: string) => issuer.split('\n').find((line) => line.startsWith(`${name}=`))
  return (part('O') ?? part('CN') ?? issuer).replace(/^\w+=/, '')
}
