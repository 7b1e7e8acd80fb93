import { badRequest } from '../core/problem'
import { type KindName, kinds } from './kinds/index'

type Values = Record<string, unknown>

/** Secrets that are compared with what a server sends, and never sent to it. */
const RECEIVED_SECRETS = ['webhookSecret', 'webhookId']

/** Whether a stored secret may stay when the settings of its connection change: it goes to no other server than before. */
export const mayKeepSecret = (kind: KindName, secret: string, before: Values, after: Values): boolean =>
  RECEIVED_SECRETS.includes(secret) || kinds[kind].serverOf(before) === kinds[kind].serverOf(after)

/** Whoever may change an address but not read secrets must not have them sent there. @throws 400 with each such secret */
export function assertSecretsStay(
  { kind, before, after }: { kind: KindName; before: Values; after: Values },
  stored: string[],
  sent: Values,
) {
  const leaving = stored.filter((secret) => !Object.hasOwn(sent, secret) && !mayKeepSecret(kind, secret, before, after))
  if (leaving.length)
    badRequest(
      ...leaving.map((secret) => ({
        path: `/authentication/${secret}`,
        message: `The server is another one now: send ${secret} again in the same request, or null to remove it.`,
      })),
    )
}
