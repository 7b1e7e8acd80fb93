import { badRequest } from '../core/problem'
import { withKeyPolicy } from '../core/shapes'
import { listMisspelledKeys, listUnknownKeys } from '../core/unknown-keys'
import { listFieldErrors } from '../core/validation'
import { kinds } from './kinds/index'
import type { ConnectionDraft } from './shapes'

const MAX_METADATA_BYTES = 16 << 10 // bytes; a list returns the metadata of many connections

type Values = Record<string, unknown>

/** Returns `before` with the sent values; a value that is null removes its key. */
export const mergeValues = (before: Values, sent: Values = {}): Values =>
  Object.fromEntries(Object.entries({ ...before, ...sent }).filter(([, value]) => value !== null))

/**
 * Rejects a connection that is not valid for its kind: also unknown secrets, and metadata that looks misspelled unless
 * it is stored already. @throws 400 with every error
 */
export function assertValidDraft({ kind, metadata = {}, authentication = {} }: ConnectionDraft, before: Values = {}) {
  const { metadata: metadataShape, authentication: secretsShape } = kinds[kind]
  const strictSecretsShape = { ...secretsShape, ...withKeyPolicy({ strict: true }) }
  const errors = [
    ...listFieldErrors(metadataShape, metadata, '/metadata'),
    ...listMisspelledKeys(metadata, Object.keys(metadataShape.properties), '/metadata', before),
    ...listFieldErrors(secretsShape, mergeValues({}, authentication), SECRETS_PATH),
    ...listUnknownKeys(strictSecretsShape, authentication, SECRETS_PATH, [{ keys: SIBLING_KEYS, at: '' }]),
  ]
  if (Buffer.byteLength(JSON.stringify(metadata)) > MAX_METADATA_BYTES)
    errors.push({ path: '/metadata', message: `metadata can be at most ${MAX_METADATA_BYTES} bytes of JSON.` })
  if (errors.length) badRequest(...errors)
}

/** Returns a draft without values that are null. @throws 400 */
export function parseDraft({ kind, metadata, authentication }: ConnectionDraft) {
  const draft = { kind, metadata: mergeValues({}, metadata), authentication: mergeValues({}, authentication) }
  assertValidDraft(draft)
  return draft
}

const SECRETS_PATH = '/authentication'
const SIBLING_KEYS = ['name', 'kind', 'labels', 'metadata']
