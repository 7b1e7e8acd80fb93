import type { TObject } from '@sinclair/typebox'
import { t } from 'elysia'
import { badRequest, type FieldError } from '../core/problem'
import { withKeyPolicy } from '../core/shapes'
import { listUnknownKeys } from '../core/unknown-keys'
import { listFieldErrors } from '../core/validation'
import { NewIntegration } from './shapes'
import { type Target, type TargetName, targets } from './targets/index'
import { type Trigger, type TriggerName, triggers, validateTrigger } from './triggers/index'

/** What a caller sent as a trigger or a target. Only its kind is known to be valid. */
type Unparsed<Kind extends string> = { kind: Kind } & Record<string, unknown>

/** Returns the trigger. @throws 400 with every error, also for keys that its kind does not have */
export function parseTrigger(sent: Unparsed<TriggerName>): Trigger {
  const trigger = requireValidPart<Trigger>(triggers, sent, '/trigger')
  const errors = validateTrigger(trigger)
  if (errors.length) badRequest(...prefixPaths('/trigger', errors))
  return trigger
}

/** Returns the target. Its references are checked in the write. @throws 400 with every error */
export const parseTarget = (sent: Unparsed<TargetName>) => requireValidPart<Target>(targets, sent, '/target')

/** Returns the errors with `part` before their paths. */
export const prefixPaths = (part: string, errors: FieldError[]) =>
  errors.map(({ path, message }) => ({ path: part + path, message }))

type Kinds = Record<string, { shape: TObject }>

function requireValidPart<Part extends { kind: string }>(
  kinds: Kinds,
  sent: Unparsed<Part['kind']>,
  path: string,
): Part {
  const { kind, ...fields } = sent
  const errors = [...listUnknownFields(kinds, kind, fields, path), ...listFieldErrors(kinds[kind]!.shape, fields, path)]
  if (errors.length) badRequest(...errors)
  // It has been checked with the shape of its kind.
  return sent as Part
}

function listUnknownFields(kinds: Kinds, kind: string, fields: Record<string, unknown>, part: string): FieldError[] {
  const { shape } = kinds[kind]!
  const strict = t.Object({ ...shape.properties, kind: t.Literal(kind) }, withKeyPolicy({ strict: true }))
  const integrationKeys = { keys: Object.keys(NewIntegration.properties), at: '' }
  return listUnknownKeys(strict, fields, part, [integrationKeys]).map((error) => {
    const key = error.path.slice(part.length + 1)
    const others = Object.keys(kinds).filter((other) => Object.hasOwn(kinds[other]!.shape.properties, key))
    if (!others.length) return error
    return { ...error, message: `A ${part.slice(1)} of the kind ${kind} has no ${key}: only ${others.join(', ')} has.` }
  })
}
