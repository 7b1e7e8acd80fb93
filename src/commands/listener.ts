import type { Server, TLSOptions } from 'bun'
import { config, isTlsServer } from '../config'
import { log } from '../core/log'
import { getProcessNumber } from '../core/server-processes'
import { listen } from '../gateway'
import { answerChallenge, isChallenge } from '../tls/challenges'
import { loadServedCertificates, watchServedCertificates } from '../tls/served-certificates'

const TAKEOVER_MS = 50 // both servers take connections meanwhile, so that hardly any waits at the one that ends
const HTTPS_PORT = 443
const HTTP_PORT = 80

type HttpServer = Pick<Server<undefined>, 'port' | 'hostname' | 'pendingRequests' | 'stop'>

/** The ports of this process, as one. */
export type Listener = {
  /** The address that is printed. */
  url: string
  /** How many requests are not answered yet. */
  readonly pendingRequests: number
  /** Takes no more connections, and resolves when the open ones have ended; `isForced` ends them. */
  stop(isForced?: boolean): Promise<void>
}

/** A port could not be opened. */
export class ListenFailure extends Error {
  constructor(
    readonly setting: 'ATOLL_PORT' | 'ATOLL_HTTP_PORT',
    readonly port: number,
    cause: unknown,
  ) {
    super(`Cannot open port ${port}.`, { cause })
  }
}

/**
 * Opens the ports of this process: that of the application, and with TLS that of plain HTTP.
 * @throws ListenFailure, ConfigError when certificate files cannot be used
 */
export async function openPorts(): Promise<Listener> {
  if (!isTlsServer()) return toListener('http', [open('ATOLL_PORT', listen)])
  const certificates = await loadServedCertificates()
  const port = getProcessNumber() ? config.ATOLL_PORT : await reservePort()
  const servers = [open('ATOLL_PORT', (host) => listen(host, port, certificates))]
  if (config.ATOLL_HTTP_PORT) servers.push(await openRedirectPort(servers))
  const stopWatching = watchServedCertificates(certificates, (changed) => replaceServer(servers, changed))
  return toListener('https', servers, stopWatching)
}

function open<S extends HttpServer>(
  setting: 'ATOLL_PORT' | 'ATOLL_HTTP_PORT',
  start: (host: string, port: number) => S,
): S {
  try {
    return start(config.ATOLL_HOST, config[setting])
  } catch (error) {
    throw new ListenFailure(setting, config[setting], error)
  }
}

async function openRedirectPort(servers: HttpServer[]) {
  try {
    return open('ATOLL_HTTP_PORT', (host, port) => listenForRedirects(host, port, servers[0]?.port ?? HTTPS_PORT))
  } catch (error) {
    await servers[0]?.stop(true)
    throw error
  }
}

/**
 * Returns the port of the application, which no other process uses. Processes that share a port need that, or a second
 * server would share it by mistake.
 * @throws ListenFailure
 */
export async function reservePort(): Promise<number> {
  const probe = open('ATOLL_PORT', (hostname, port) =>
    Bun.serve({ hostname, port, fetch: () => new Response(null, { status: 503 }) }),
  )
  const { port = config.ATOLL_PORT } = probe
  await probe.stop(true)
  return port
}

/**
 * Starts a server with other certificates at the same port, and ends the one before it gracefully: its requests and
 * streams go on. Bun cannot change the certificates of a server.
 */
async function replaceServer(servers: HttpServer[], certificates: TLSOptions[]) {
  const before = servers[0]
  if (!before?.port) return
  servers[0] = listen(config.ATOLL_HOST, before.port, certificates)
  servers.push(before)
  log.info({ event: 'certificates-changed', certificates: certificates.length })
  await Bun.sleep(TAKEOVER_MS)
  void before.stop().then(() => servers.splice(servers.indexOf(before), 1))
}

function toListener(scheme: 'http' | 'https', servers: HttpServer[], stopWatching?: () => void): Listener {
  const [{ hostname, port }] = servers as [HttpServer]
  return {
    url: `${scheme}://${hostname?.includes(':') ? `[${hostname}]` : hostname}:${port}`,
    get pendingRequests() {
      return servers.reduce((sum, server) => sum + server.pendingRequests, 0)
    },
    async stop(isForced) {
      stopWatching?.()
      await Promise.all([...servers].map((server) => server.stop(isForced)))
    },
  }
}

/** Starts the server for plain HTTP, which answers ACME challenges and redirects everything else. */
function listenForRedirects(hostname: string, port: number, httpsPort: number): Server<undefined> {
  return Bun.serve({
    hostname,
    port,
    reusePort: getProcessNumber() !== undefined,
    fetch: (request) => (isChallenge(request) ? answerChallenge(request) : redirectToHttps(request, port, httpsPort)),
    error: () => new Response(null, { status: 503 }),
  })
}

/** Returns a redirect to the same address by HTTPS. */
export function redirectToHttps({ headers, url }: Request, port: number, httpsPort: number): Response {
  const [, host, ownPort] = /^([a-z\d._-]+|\[[\da-f:.]+\])(:\d+)?$/i.exec(headers.get('host') ?? '') ?? []
  if (!host) return new Response('The Host header is missing or malformed.\n', { status: 400 })
  // A client that named no port came by port 80: where this is another one, the ports are mapped, and 443 is, too.
  const isMapped = !ownPort && port !== HTTP_PORT
  const httpsAuthority = isMapped || httpsPort === HTTPS_PORT ? host : `${host}:${httpsPort}`
  const path = url.slice(url.indexOf('/', url.startsWith('http') ? 'http://'.length : 0))
  return new Response(null, { status: 308, headers: { location: `https://${httpsAuthority}${path}` } })
}
