import type { TObject } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { type Flaw, invalid } from '../../core/problem'
import { kinds } from './kinds'
import type { ConnectionDraft } from './shapes'

const MOST = 16 << 10 // bytes of metadata: a list shows that of many

type Parts = Record<string, unknown>

/** What is sent, in the place of what was there; null takes away. */
export const over = (before: Parts, sent: Parts = {}): Parts =>
  Object.fromEntries(Object.entries({ ...before, ...sent }).filter(([, value]) => value !== null))

/** Refuses what is not as its kind has to be. @throws 400 with every flaw */
export function refuseUnfit({ kind, metadata = {}, authentication = {} }: ConnectionDraft) {
  const { metadata: known, authentication: secrets } = kinds[kind] as { metadata: TObject; authentication: TObject }
  const flaws = [...flawsOf(known, metadata, '/metadata'), ...flawsOf(secrets, over({}, authentication), SECRETS)]
  for (const name of Object.keys(authentication))
    if (!Object.hasOwn(secrets.properties, name)) flaws.push(unknown(name, Object.keys(secrets.properties)))
  if (Buffer.byteLength(JSON.stringify(metadata)) > MOST)
    flaws.push({ path: '/metadata', message: `At most ${MOST} bytes of JSON are kept.` })
  if (flaws.length) invalid(...flaws)
}

/** A draft without what is null. @throws 400 */
export function fittingDraft({ kind, metadata, authentication }: ConnectionDraft) {
  const draft = { kind, metadata: over({}, metadata), authentication: over({}, authentication) }
  refuseUnfit(draft)
  return draft
}

const SECRETS = '/authentication'

/** What is wrong never shows a value: it may be a secret. */
const flawsOf = (shape: TObject, value: unknown, at: string): Flaw[] =>
  [...Value.Errors(shape, value)].map(({ path, message }) => ({ path: at + path, message }))

const unknown = (name: string, known: string[]) => ({
  path: `${SECRETS}/${name}`,
  message: `Its secrets are ${known.join(', ')}; there is no "${name}".`,
})
