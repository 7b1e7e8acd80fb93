import { config } from '../config'
import { Problem } from '../core/problem'
import { requestHost } from './client-connection'

/** @throws 404 TENANT_NOT_FOUND */
export function throwTenantNotFound(id: string): never {
  const hint = id === id.toLowerCase() ? '' : ' Ids of tenants are lower case.'
  throw new Problem(404, 'TENANT_NOT_FOUND', `There is no tenant "${id.slice(0, 100)}".${hint}`)
}

/** @throws 404 TENANT_NOT_FOUND for a request at a host of no tenant */
export function throwHostNotFound(request: Request): never {
  const host = requestHost(request).slice(0, 253)
  const where = host ? `No tenant answers at ${host}.` : 'The request names no host.'
  const hint = config.ATOLL_TENANT_HEADER === 'on' ? 'Send the header "tenant", or ask' : 'Ask'
  const message = `${where} ${hint} the operator to give the tenant this host (atoll tenant hosts).`
  throw new Problem(404, 'TENANT_NOT_FOUND', message)
}
