import type { TObject } from '@sinclair/typebox'
import { invalid } from '../../core/problem'
import { withKeys } from '../../core/shapes'
import { listMisspelledKeys, listUnknownKeys } from '../../core/unknown-keys'
import { listFlaws } from '../../core/validation'
import { kinds } from './kinds'
import type { ConnectionDraft } from './shapes'

const MOST = 16 << 10 // bytes of metadata: a list shows that of many

type Parts = Record<string, unknown>

/** What is sent, in the place of what was there; null takes away. */
export const over = (before: Parts, sent: Parts = {}): Parts =>
  Object.fromEntries(Object.entries({ ...before, ...sent }).filter(([, value]) => value !== null))

/**
 * Refuses what is not as its kind has to be: secrets that it does not have, and what looks like a misspelling of metadata
 * that it has, unless that is kept already. @throws 400 with every flaw
 */
export function refuseUnfit({ kind, metadata = {}, authentication = {} }: ConnectionDraft, before: Parts = {}) {
  const { metadata: known, authentication: secrets } = kinds[kind] as { metadata: TObject; authentication: TObject }
  const strict = { ...secrets, ...withKeys({ strict: true }) }
  const flaws = [
    ...listFlaws(known, metadata, '/metadata'),
    ...listMisspelledKeys(metadata, Object.keys(known.properties), '/metadata', before),
    ...listFlaws(secrets, over({}, authentication), SECRETS),
    ...listUnknownKeys(strict, authentication, SECRETS, [{ keys: BESIDE, at: '' }]),
  ]
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
const BESIDE = ['name', 'kind', 'labels', 'metadata']
