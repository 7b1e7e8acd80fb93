import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { waitUntil } from '../wait-until'
import { createAuthority } from './certificate-authority'
import { createTempFolder } from './cli'

const program = Bun.which('pebble')

/** Whether a real ACME server is installed here. */
export const hasPebble = program !== null
if (!hasPebble)
  console.warn('SKIPPED: the tests of ACME, because there is no `pebble`. Debian: apt-get install pebble.')

/** Returns a port of this machine that is free. */
export async function findFreePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

type PebbleOptions = {
  /** The port at which it checks hosts by HTTP. */
  httpPort: number
  /** The DNS server that it asks for the addresses of hosts. */
  dnsServer: string
  /** How long its certificates are valid, in seconds. */
  validity: number
  /** The external accounts that it knows, with their HMAC keys; it then creates no account without one of them. */
  externalAccounts?: Record<string, string>
  /** How many nonces of a hundred it refuses. */
  nonceRejection?: number
}

/**
 * Starts Pebble, the ACME server of Let's Encrypt for tests, for `await using`. `directory` is its address and `caFile`
 * has the authority of that address.
 */
export async function startPebble({
  httpPort,
  dnsServer,
  validity,
  externalAccounts,
  nonceRejection = 5,
}: PebbleOptions) {
  const [folder, authority] = [createTempFolder(), await createAuthority('Pebble')]
  const { chain, key } = await authority.issue(['127.0.0.1', 'localhost'])
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const [listenPort, managementPort] = [await findFreePort(), await findFreePort()]
  const pebble = {
    listenAddress: `127.0.0.1:${listenPort}`,
    managementListenAddress: `127.0.0.1:${managementPort}`,
    certificate: write('chain.pem', chain),
    privateKey: write('key.pem', key),
    ...{ httpPort, tlsPort: httpPort, ocspResponderURL: '' },
    ...{ externalAccountBindingRequired: !!externalAccounts, externalAccountMACKeys: externalAccounts ?? {} },
    certificateValidityPeriod: validity,
  }
  const config = write('config.json', JSON.stringify({ pebble }))
  const child = Bun.spawn([program ?? '', '-config', config, '-dnsserver', dnsServer], {
    // Each order is checked anew, and without the pauses of a real authority.
    env: { PEBBLE_VA_NOSLEEP: '1', PEBBLE_AUTHZREUSE: '0', PEBBLE_WFE_NONCEREJECT: `${nonceRejection}` },
    stdout: 'ignore',
    stderr: 'ignore',
  })
  const directory = `https://127.0.0.1:${listenPort}/dir`
  const tls = { ca: authority.root }
  await waitUntil(() =>
    fetch(directory, { tls }).then(
      ({ ok }) => ok,
      () => false,
    ),
  )
  return {
    directory,
    caFile: write('root.pem', authority.root),
    /** Returns the root of the certificates that it issues (PEM). */
    fetchRoot: async () => (await fetch(`https://127.0.0.1:${managementPort}/roots/0`, { tls })).text(),
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
    },
  }
}
