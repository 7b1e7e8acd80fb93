import { createClient } from '../definitions/atoll-client'
import { createHooks } from '../definitions/atoll-hooks'

/** The page and the API have one origin, so the browser keeps the session in a cookie that scripts cannot read. */
export const client = createClient({ url: location.origin, mode: 'cookie' })
export const hooks = createHooks(client)

export type { Comments as Comment, Tickets as Ticket } from '../definitions/atoll-client'
