import { extensions } from '../core/extension'

/**
 * Statements that take from a copy of a tenant what would act a second time outside: work that the origin does itself,
 * and links to things at others that belong to the origin.
 */
export const copyDetachments = extensions<string>('statements that detach copies of tenants')
