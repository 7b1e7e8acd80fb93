import type { Ctx } from '../../accounts/guard'
import { iso, now } from '../../core/clock'
import { Unreachable, type Why } from '../../core/outside'
import { waitsLong } from '../../tenancy/caller'
import { fittingDraft } from './fitting'
import { type KindName, kinds, type Opened } from './kinds'
import { type Kind, NotConnected } from './kinds/kind'
import { found, withSecrets } from './opening'
import type { ConnectionDraft, Status } from './shapes'

type Given = Pick<Opened, 'tenant' | 'kind' | 'metadata' | 'authentication'>

/** Whether a connection's server takes us now. @throws 404 */
export async function status(ctx: Ctx, id: string, request: Request): Promise<Status> {
  return checked(await withSecrets(ctx, await found(ctx.db, id)), request)
}

/** The same before it is kept. @throws 400 */
export const statusOfDraft = async ({ tenant }: Ctx, draft: ConnectionDraft, request: Request): Promise<Status> =>
  checked({ tenant, ...fittingDraft(draft) } as Given, request)

async function checked({ kind, ...given }: Given, request: Request): Promise<Status> {
  // A connection on which nothing moves for ten seconds would be cut.
  waitsLong(request)
  const { check } = kinds[kind as KindName] as Kind<never, never>
  try {
    return { status: 'connected', message: await check(given as never), checkedAt: iso(now()) }
  } catch (error) {
    return { status: 'failed', message: saying(error), checkedAt: iso(now()) }
  }
}

function saying(error: unknown): string {
  if (error instanceof NotConnected) return error.message
  if (error instanceof Unreachable) return SAID[error.why]
  throw error
}

const SAID: Record<Why, string> = {
  refused: 'Its address is none that we may ask.',
  timeout: 'It did not answer in time.',
  'too-large': 'Its answer was too large.',
  unreachable: 'Nobody was there, or the connection broke off.',
}
