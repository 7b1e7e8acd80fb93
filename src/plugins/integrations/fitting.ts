import type { TObject } from '@sinclair/typebox'
import { t } from 'elysia'
import { type Flaw, invalid } from '../../core/problem'
import { withKeys } from '../../core/shapes'
import { listUnknownKeys } from '../../core/unknown-keys'
import { listFlaws } from '../../core/validation'
import { NewIntegration } from './shapes'
import { type Target, targets } from './targets'
import { type Trigger, triggers } from './triggers'
import type { TriggerKind } from './triggers/trigger'

/** A trigger as its kind has to be. @throws 400 with every flaw, and for keys that its kind does not have */
export function fittingTrigger({ kind, ...given }: { kind: Trigger['kind'] } & Record<string, unknown>): Trigger {
  const { flaws } = triggers[kind] as unknown as TriggerKind<TObject>
  const fit = fitting(triggers, kind, given, '/trigger')
  const wrong = flaws?.(fit) ?? []
  if (wrong.length) invalid(...below('/trigger', wrong))
  return { kind, ...fit } as Trigger
}

/** The same for a target. Whether there is what it refers to, is asked in the write. @throws 400 with every flaw */
export const fittingTarget = ({ kind, ...given }: { kind: Target['kind'] } & Record<string, unknown>) =>
  ({ kind, ...fitting(targets, kind, given, '/target') }) as Target

/** Flaws of a part, as flaws of the whole. */
export const below = (part: string, flaws: Flaw[]) => flaws.map(({ path, message }) => ({ path: part + path, message }))

type Kinds = Record<string, { shape: TObject }>

function fitting(kinds: Kinds, kind: string, given: Record<string, unknown>, part: string) {
  const { shape } = kinds[kind]!
  const flaws = [...unknownKeys(kinds, kind, given, part), ...listFlaws(shape, given, part)]
  if (flaws.length) invalid(...flaws)
  return given
}

function unknownKeys(kinds: Kinds, kind: string, given: Record<string, unknown>, part: string): Flaw[] {
  const { shape } = kinds[kind]!
  const strict = t.Object({ ...shape.properties, kind: t.Literal(kind) }, withKeys({ strict: true }))
  const whole = { keys: Object.keys(NewIntegration.properties), at: '' }
  return listUnknownKeys(strict, given, part, [whole]).map((flaw) => {
    const key = flaw.path.slice(part.length + 1)
    const others = Object.keys(kinds).filter((other) => Object.hasOwn(kinds[other]!.shape.properties, key))
    if (!others.length) return flaw
    return { ...flaw, message: `A ${part.slice(1)} of the kind ${kind} has no ${key}: only ${others.join(', ')} has.` }
  })
}
