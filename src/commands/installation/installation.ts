import type { Static } from 'elysia'
import type { ClonedTenant } from '../../backups/shapes'
import type { QuotaChange, TenantQuotas } from '../../limits/shapes'
import type { CreatedOperatorToken, NewOperatorToken, NewTenant, OperatorToken } from '../../operations/shapes'
import type { DefaultTenant, DefaultTenantChoice } from '../../tenancy/default-tenant'
import type { MoveResult } from '../../tenancy/move'
import type { getTenantInfo } from '../../tenancy/tenant-list'

/** A tenant as commands show it. */
export type TenantInfo = Awaited<ReturnType<typeof getTenantInfo>>

/** What a copy of a tenant does not get. */
export type CloneOptions = { withoutSecrets?: boolean }

/** Receives what is being done for a tenant, and how much of it, from 0 to 1, where that is known. */
export type ReportProgress = (tenant: string, step: string, fraction?: number) => void

/** What commands do with the tenants and the operator's tokens of an installation: the one of a folder here, or of a server. */
export interface Installation {
  listTenants(): Promise<TenantInfo[]>
  getTenant(id: string): Promise<TenantInfo>
  createTenant(tenant: Static<typeof NewTenant>): Promise<TenantInfo>
  setStatus(id: string, status: TenantInfo['status'], options?: { outgoing?: boolean }): Promise<TenantInfo>
  /** Deletes a tenant, and returns where its files are now. */
  deleteTenant(id: string): Promise<string | null>
  setHosts(id: string, hosts: string[]): Promise<TenantInfo>
  getDefaultTenant(): Promise<DefaultTenant>
  chooseDefaultTenant(choice: DefaultTenantChoice): Promise<DefaultTenant>
  getQuotas(id: string): Promise<TenantQuotas>
  setQuotas(id: string, change: QuotaChange): Promise<TenantQuotas>
  moveTenant(id: string, to: string, onProgress: (line: string) => void): Promise<MoveResult>
  cloneTenant(id: string, as: string, options: CloneOptions, onProgress: ReportProgress): Promise<ClonedTenant>
  listTokens(): Promise<OperatorToken[]>
  createToken(token: NewOperatorToken): Promise<CreatedOperatorToken>
  removeToken(id: string): Promise<unknown>
}
