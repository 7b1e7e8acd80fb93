import type { ClonedTenant } from '../../backups/shapes'
import { tryParseJson } from '../../core/json'
import { Problem } from '../../core/problem'
import type { OperatorTask } from '../../operations/shapes'
import type { MoveResult } from '../../tenancy/move'
import type { Installation, ReportProgress, TenantInfo } from './installation'

const POLL_INTERVAL_MS = 500
const PAGE = 100

/** A server refused a request of a command, with this code and message. */
class RequestRefused extends Problem {
  constructor(status: number, body: { code?: string; message?: string; details?: never } | undefined, url: string) {
    const { code = 'UNEXPECTED_ANSWER', message, details } = body ?? {}
    super(
      status,
      code,
      message ?? `${url} returned ${status}, but not from Atoll. Check the URL and the proxy in front of the server.`,
      details && { details },
    )
  }
}

/** Returns the installation of a server, which is asked by its operator's API. */
export function createRemoteInstallation(url: string, token: string): Installation & RemoteServer {
  const server = new RemoteServer(url, token)
  const toInfo = ({ id, status, created, hosts, home, moved, outgoingHeld }: TenantInfo): TenantInfo => ({
    ...{ id, status, created },
    ...(home && { home }),
    ...(moved && { moved }),
    ...(outgoingHeld && { outgoingHeld }),
    hosts,
  })
  const pathOf = (id: string) => `/tenants/${encodeURIComponent(id)}`
  const getTenant = async (id: string) => toInfo(await server.call('GET', pathOf(id)))
  return Object.assign(server, {
    async listTenants() {
      const all: TenantInfo[] = []
      for (let page = 1; ; page++) {
        const found = await server.call<TenantInfo[]>('GET', `/tenants?limit=${PAGE}&page=${page}`)
        all.push(...found.map(toInfo))
        if (found.length < PAGE) return all
      }
    },
    getTenant,
    createTenant: async (tenant) => toInfo(await server.call('POST', '/tenants', tenant)),
    setStatus: async (id, status, { outgoing = false } = {}) => {
      const step = status === 'suspended' ? 'suspend' : `resume${outgoing ? '?outgoing=true' : ''}`
      return toInfo(await server.call('POST', `${pathOf(id)}/${step}`))
    },
    deleteTenant: async (id) =>
      (await server.call<{ trash: string | null }>('DELETE', `${pathOf(id)}?confirm=${encodeURIComponent(id)}`)).trash,
    async setHosts(id, hosts) {
      await server.call('PUT', `${pathOf(id)}/hosts`, { hosts })
      return getTenant(id)
    },
    getDefaultTenant: () => server.call('GET', '/default-tenant'),
    chooseDefaultTenant: (choice) => server.call('PUT', '/default-tenant', choice),
    getQuotas: (id) => server.call('GET', `${pathOf(id)}/quotas`),
    setQuotas: (id, change) => server.call('PUT', `${pathOf(id)}/quotas`, change),
    moveTenant: (id, to, onProgress) =>
      server.runTask<MoveResult>(`${pathOf(id)}/move`, { to }, (_tenant, step) => onProgress(step)),
    cloneTenant: (id, as, options, onProgress) =>
      server.runTask<ClonedTenant>(`${pathOf(id)}/clone`, { as, ...options }, onProgress),
    listTokens: () => server.call('GET', '/tokens'),
    createToken: (token) => server.call('POST', '/tokens', token),
    removeToken: (id) => server.call('DELETE', `/tokens/${encodeURIComponent(id)}`),
  } satisfies Installation)
}

/** The operator's API of a server. */
class RemoteServer {
  constructor(
    private url: string,
    private token: string,
  ) {}

  /** Sends a request, and returns the answer. @throws the problem that the server answers */
  async call<Result>(method: string, path: string, body?: unknown): Promise<Result> {
    const response = await fetch(`${this.url.replace(/\/+$/, '')}/operator${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    }).catch((cause) => {
      throw new Problem(502, 'SERVER_UNREACHABLE', `Cannot reach ${this.url}: ${cause.message}`, { cause })
    })
    const answer = tryParseJson(await response.text())
    if (!response.ok || answer === undefined) throw new RequestRefused(response.status, answer as never, this.url)
    return answer as Result
  }

  /** Starts a task, waits for its end, and returns its result. @throws the problem of the task */
  async runTask<Result>(path: string, input: object, onProgress: ReportProgress): Promise<Result> {
    let task = await this.call<OperatorTask>('POST', path, input)
    while (task.status === 'running') {
      if (task.progress) onProgress(task.tenant, task.progress.message, task.progress.fraction ?? undefined)
      await Bun.sleep(POLL_INTERVAL_MS)
      task = await this.call('GET', `/tasks/${task._id}`)
    }
    if (task.status !== 'succeeded') throw new RequestRefused(409, task.problem as never, this.url)
    return task.result as Result
  }
}
