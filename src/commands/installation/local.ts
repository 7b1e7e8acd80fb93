import { cloneTenant } from '../../backups/clone'
import { parseWithShape } from '../../core/shapes'
import * as operatorTokens from '../../operations/operator-tokens'
import { NewOperatorToken } from '../../operations/shapes'
import * as administration from '../../operations/tenant-administration'
import { chooseDefaultTenant, getDefaultTenant } from '../../tenancy/default-tenant'
import { moveTenant } from '../../tenancy/move'
import { resumeOutgoing } from '../../tenancy/outgoing-hold'
import { getTenantInfo, listTenants } from '../../tenancy/tenant-list'
import * as tenants from '../../tenancy/tenants'
import type { Installation } from './installation'

/** The installation whose data are where the settings say. */
export const localInstallation: Installation = {
  listTenants,
  getTenant: getTenantInfo,
  async createTenant(tenant) {
    await administration.createWithAdmin(tenant)
    return getTenantInfo(tenant.id)
  },
  async setStatus(id, status, { outgoing = false } = {}) {
    if (outgoing) await resumeOutgoing(id)
    await tenants.setStatus(id, status)
    return getTenantInfo(id)
  },
  deleteTenant: async (id) => (await tenants.deleteTenant(id)) ?? null,
  async setHosts(id, hosts) {
    await tenants.setHosts(id, hosts)
    return getTenantInfo(id)
  },
  getDefaultTenant,
  chooseDefaultTenant,
  async getQuotas(id) {
    await import('../../app') // areas measure what is used
    return administration.getQuotas(id)
  },
  async setQuotas(id, change) {
    await import('../../app') // areas measure what is used
    return administration.setQuotas(id, change)
  },
  moveTenant,
  async cloneTenant(id, as, options, onProgress) {
    await import('../../app') // areas name the tables of their credentials
    return cloneTenant(id, as, { onProgress: (step, fraction) => onProgress(as, step, fraction) }, options)
  },
  listTokens: operatorTokens.listTokens,
  createToken: (token) => operatorTokens.createToken(parseWithShape(NewOperatorToken, token)),
  removeToken: operatorTokens.removeToken,
}
