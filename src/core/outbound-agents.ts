import { Agent, request as overHttp } from 'node:http'
import { request as overHttps, Agent as TlsAgent } from 'node:https'

// `fetch` is not used: Bun allows 256 of them per process, so one tenant could leave none to the others.
const IDLE_SOCKET_MS = 4_000 // most servers close an idle connection after 5 s
const MAX_TENANTS_WITH_SOCKETS = 1_000 // beyond that the longest unused tenant's connections are not reused

/** The addresses of a request's host. */
type WithAddresses = { addresses?: string[] }

/** Reuses a connection only while its host has the same addresses. */
class HttpAgent extends Agent {
  override getName(options?: Parameters<Agent['getName']>[0] & WithAddresses) {
    return `${super.getName(options)} ${options?.addresses}`
  }
}
class HttpsAgent extends TlsAgent {
  override getName(options?: Parameters<TlsAgent['getName']>[0] & WithAddresses) {
    return `${super.getName(options)} ${options?.addresses}`
  }
}

type TenantAgents = { 'http:': HttpAgent; 'https:': HttpsAgent }
const agentsByTenant = new Map<string, TenantAgents>()

/** Returns the agents of one tenant. Tenants share no connections. */
export function agentsOf(tenant: string): TenantAgents {
  const options = { keepAlive: true, timeout: IDLE_SOCKET_MS }
  const tenantAgents = agentsByTenant.get(tenant) ?? {
    'http:': new HttpAgent(options),
    'https:': new HttpsAgent(options),
  }
  agentsByTenant.delete(tenant)
  agentsByTenant.set(tenant, tenantAgents)
  const [oldest] = agentsByTenant.keys()
  // Active connections go on, and idle ones end by themselves.
  if (agentsByTenant.size > MAX_TENANTS_WITH_SOCKETS && oldest !== undefined) agentsByTenant.delete(oldest)
  return tenantAgents
}

/** The functions that send a request, by the protocol. */
export const requestBy = { 'http:': overHttp, 'https:': overHttps }
