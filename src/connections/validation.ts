import { findNearestKey } from '../core/nearest-key'
import { badRequest, type FieldError } from '../core/problem'
import { withKeyPolicy } from '../core/shapes'
import { listUnknownKeys } from '../core/unknown-keys'
import { listFieldErrors, MAX_FIELD_ERRORS } from '../core/validation'
import { type KindName, kinds } from './kinds/index'
import type { ConnectionDraft } from './shapes'

const MAX_METADATA_BYTES = 16 << 10 // bytes; a list returns the metadata of many connections

type Values = Record<string, unknown>

/** Returns `before` with the sent values; a value that is null removes its key. */
export const mergeValues = (before: Values, sent: Values = {}): Values =>
  Object.fromEntries(Object.entries({ ...before, ...sent }).filter(([, value]) => value !== null))

/**
 * Rejects a connection that is not valid for its kind: also unknown secrets, and unknown metadata unless it is stored
 * already as it is. @throws 400 with every error
 */
export function assertValidDraft({ kind, metadata = {}, authentication = {} }: ConnectionDraft, before: Values = {}) {
  const { metadata: metadataShape, authentication: secretsShape } = kinds[kind]
  const strictSecretsShape = { ...secretsShape, ...withKeyPolicy({ strict: true }) }
  const errors = [
    ...listFieldErrors(metadataShape, metadata, '/metadata'),
    ...listUnknownMetadata(kind, metadata, before),
    ...listFieldErrors(secretsShape, mergeValues({}, authentication), SECRETS_PATH),
    ...listUnknownKeys(strictSecretsShape, authentication, SECRETS_PATH, [{ keys: SIBLING_KEYS, at: '' }]),
  ]
  if (Buffer.byteLength(JSON.stringify(metadata)) > MAX_METADATA_BYTES)
    errors.push({ path: '/metadata', message: `metadata can be at most ${MAX_METADATA_BYTES} bytes of JSON.` })
  if (errors.length) badRequest(...errors)
}

function listUnknownMetadata(kind: KindName, metadata: Values, before: Values): FieldError[] {
  const { metadata: shape, authentication } = kinds[kind]
  const known = Object.keys(shape.properties)
  const isStored = (key: string) => Object.hasOwn(before, key) && Bun.deepEquals(before[key], metadata[key])
  const unknown = Object.keys(metadata).filter((key) => !known.includes(key) && !isStored(key))
  return unknown.slice(0, MAX_FIELD_ERRORS).map((key) => {
    const isSecret = Object.hasOwn(authentication.properties, key)
    const nearest = findNearestSetting(key, known)
    const hint = isSecret
      ? 'It is a secret: send it in `authentication`.'
      : nearest
        ? `Did you mean \`${nearest}\`?`
        : `A connection of the kind ${kind} has ${known.join(', ')}.`
    return { path: `/metadata/${key}`, message: `metadata.${key.slice(0, 100)} is unknown. ${hint}` }
  })
}

/** Settings have the same last words at many vendors: `baseUrl` and `url` mean `apiUrl`. */
const findNearestSetting = (key: string, known: string[]) => {
  const lastWord = (name: string) => /[A-Za-z][a-z]*$/.exec(name)?.[0].toLowerCase()
  return findNearestKey(key, known) ?? known.find((name) => lastWord(name) === lastWord(key))
}

/** Returns a draft without values that are null. @throws 400 */
export function parseDraft({ kind, metadata, authentication }: ConnectionDraft) {
  const draft = { kind, metadata: mergeValues({}, metadata), authentication: mergeValues({}, authentication) }
  assertValidDraft(draft)
  return draft
}

const SECRETS_PATH = '/authentication'
const SIBLING_KEYS = ['name', 'kind', 'labels', 'metadata']
