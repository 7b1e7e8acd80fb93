import type { TObject } from '@sinclair/typebox'
import { t } from 'elysia'
import { badRequest, type FieldError } from '../core/problem'
import { withKeyPolicy } from '../core/shapes'
import { listUnknownKeys } from '../core/unknown-keys'
import { listFieldErrors } from '../core/validation'
import { NewIntegration } from './shapes'
import { type Target, targets } from './targets/index'
import { type Trigger, triggers } from './triggers/index'
import type { TriggerKind } from './triggers/trigger-kind'

/** Returns the trigger. @throws 400 with every error, also for keys that its kind does not have */
export function parseTrigger({ kind, ...fields }: { kind: Trigger['kind'] } & Record<string, unknown>): Trigger {
  const { validate } = triggers[kind] as unknown as TriggerKind<TObject>
  const validFields = requireValidFields(triggers, kind, fields, '/trigger')
  const errors = validate?.(validFields) ?? []
  if (errors.length) badRequest(...prefixPaths('/trigger', errors))
  return { kind, ...validFields } as Trigger
}

/** Returns the target. Its references are checked in the write. @throws 400 with every error */
export const parseTarget = ({ kind, ...fields }: { kind: Target['kind'] } & Record<string, unknown>) =>
  ({ kind, ...requireValidFields(targets, kind, fields, '/target') }) as Target

/** Returns the errors with `part` before their paths. */
export const prefixPaths = (part: string, errors: FieldError[]) =>
  errors.map(({ path, message }) => ({ path: part + path, message }))

type Kinds = Record<string, { shape: TObject }>

function requireValidFields(kinds: Kinds, kind: string, fields: Record<string, unknown>, part: string) {
  const { shape } = kinds[kind]!
  const errors = [...listUnknownFields(kinds, kind, fields, part), ...listFieldErrors(shape, fields, part)]
  if (errors.length) badRequest(...errors)
  return fields
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
