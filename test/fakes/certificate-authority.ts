import 'reflect-metadata'
import * as x509 from '@peculiar/x509'

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const DAY_MS = 86_400_000

type Lifetime = { from?: number; to?: number }

/**
 * Creates an authority that signs certificates for tests. `root` is what clients have to trust; `issue` returns a
 * certificate for these hosts and its private key (PEM).
 */
export async function createAuthority(name = 'Test authority') {
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    ...{ name: `CN=${name}`, keys, signingAlgorithm: ALGORITHM },
    ...{ notBefore: new Date(Date.now() - DAY_MS), notAfter: new Date(Date.now() + 365 * DAY_MS) },
    extensions: [new x509.BasicConstraintsExtension(true, 1, true)],
  })
  const issue = async (hosts: string[], { from = -DAY_MS, to = 30 * DAY_MS }: Lifetime = {}) => {
    const own = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
    const names = hosts.map((value) => ({ type: /^[\d.]+$/.test(value) ? 'ip' : 'dns', value }) as const)
    const certificate = await x509.X509CertificateGenerator.create({
      ...{ subject: `CN=${hosts[0]}`, issuer: root.subject, publicKey: own.publicKey, signingKey: keys.privateKey },
      ...{ notBefore: new Date(Date.now() + from), notAfter: new Date(Date.now() + to), signingAlgorithm: ALGORITHM },
      extensions: [new x509.SubjectAlternativeNameExtension(names)],
    })
    const pkcs8 = await crypto.subtle.exportKey('pkcs8', own.privateKey)
    return { chain: certificate.toString('pem'), key: x509.PemConverter.encode(pkcs8, 'PRIVATE KEY') }
  }
  return { root: root.toString('pem'), issue }
}
