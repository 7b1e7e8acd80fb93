import type { Ctx } from '../accounts/context'
import { now, toIsoString } from '../core/clock'
import { deriveToken, isTimingSafeEqual } from '../core/crypto'
import { deriveKey } from '../tenancy/installation-keys'
import type { Tenant } from '../tenancy/tenants'
import { getReadableFile } from './access'
import { toFileUrl } from './file-name'

const LINK_TTL_MS = 5 * 60_000

/** Returns a token with which anybody can read the content of a file for five minutes. @throws 404 FILE_NOT_FOUND */
export async function createLink(ctx: Ctx, id: string) {
  const { name } = await getReadableFile(ctx, id)
  const expires = now() + LINK_TTL_MS
  const token = `${expires.toString(36)}.${await sign(ctx, id, expires)}`
  return { token, url: `${toFileUrl(id, name)}?token=${token}`, expires: toIsoString(expires) }
}

/** Tells whether a token allows to read the content of this file, and whether it still does. */
export async function checkLink(
  tenant: Pick<Tenant, 'tenant'>,
  id: string,
  token: string,
): Promise<'valid' | 'expired' | 'invalid'> {
  const [time = '', signature = ''] = token.split('.')
  const expires = Number.parseInt(time, 36)
  if (!isTimingSafeEqual(signature, await sign(tenant, id, expires))) return 'invalid'
  return expires > now() ? 'valid' : 'expired'
}

const sign = async ({ tenant }: Pick<Tenant, 'tenant'>, id: string, expires: number) =>
  deriveToken(await deriveKey(tenant, 'file-link'), `${id} ${expires}`)
