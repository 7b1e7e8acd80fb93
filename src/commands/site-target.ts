import { config, isTlsServer } from '../config'
import { tryParseJson } from '../core/json'
import { OPERATOR } from '../definitions/target'
import * as deployments from '../sites/deployments'
import type { Deployment } from '../sites/shapes'
import { getTenant } from '../tenancy/tenants'
import { fetchFromServer, type ServerAddress, unexpectedAnswer } from './server-request'

/** A tenant whose site is changed. */
export type SiteTarget = {
  /** The tenant or the server, for people. */
  name: string
  list(): Promise<Deployment[]>
  deploy(archive: ReadableStream, spa: boolean): Promise<Deployment>
  rollback(to?: string): Promise<Deployment>
  remove(): Promise<unknown>
}

const TAR = { 'content-type': 'application/x-tar' }

/** Returns a tenant of the data here. @throws 404 TENANT_NOT_FOUND */
export async function openLocalSite(tenant: string): Promise<SiteTarget> {
  const ctx = { ...(await getTenant(tenant)), actor: OPERATOR }
  const createRequest = (init: RequestInit = {}) => {
    const host = `localhost:${config.ATOLL_PORT}`
    const headers = { host, ...(init.headers as Record<string, string>) }
    return new Request(`${isTlsServer() ? 'https' : 'http'}://${host}/api/sites`, { ...init, headers })
  }
  return {
    name: tenant,
    list: () => deployments.list(ctx, createRequest()),
    deploy: (body, spa) =>
      deployments.deploy(ctx, { spa: `${spa}` }, createRequest({ method: 'PUT', headers: TAR, body })),
    rollback: (to) => deployments.rollback(ctx, to === undefined ? {} : { to }, createRequest()),
    remove: () => deployments.remove(ctx),
  }
}

/** Returns a tenant of a server, which is asked by its API with an API token. */
export function openRemoteSite(server: ServerAddress): SiteTarget {
  async function call<Body>(method: string, path = '', init: RequestInit = {}): Promise<Body> {
    const response = await fetchFromServer(server, `/api/sites${path}`, { ...init, method })
    const answer = tryParseJson(await response.text()) as Body | undefined
    if (answer === undefined) throw unexpectedAnswer(server.url, response.status)
    return answer
  }
  return {
    name: server.tenant ?? server.url.replace(/\/+$/, ''),
    list: () => call('GET'),
    deploy: (body, spa) => call('PUT', `?spa=${spa}`, { headers: TAR, body }),
    rollback: (to) => call('POST', `/rollback${to === undefined ? '' : `?to=${encodeURIComponent(to)}`}`),
    remove: () => call('DELETE'),
  }
}
