import { extensions } from '../core/extension'

/** The tables with credentials, which a copy of a tenant does not get: they would be valid at both. */
export const credentialTables = extensions<string>('credential tables')
