import type { TObject } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { type Flaw, invalid } from '../../core/problem'
import { type Target, targets } from './targets'
import { type Trigger, triggers } from './triggers'
import type { TriggerKind } from './triggers/trigger'

/** A trigger as its kind has to be, without what is not its business. @throws 400 with every flaw */
export function fittingTrigger({ kind, ...given }: { kind: Trigger['kind'] } & Record<string, unknown>): Trigger {
  const { shape, flaws } = triggers[kind] as unknown as TriggerKind<TObject>
  const fit = fitting(shape, given, '/trigger')
  const wrong = flaws?.(fit) ?? []
  if (wrong.length) invalid(...below('/trigger', wrong))
  return { kind, ...fit } as Trigger
}

/** The same for a target. Whether there is what it refers to, is asked in the write. @throws 400 with every flaw */
export const fittingTarget = ({ kind, ...given }: { kind: Target['kind'] } & Record<string, unknown>) =>
  ({ kind, ...fitting(targets[kind].shape, given, '/target') }) as Target

/** Flaws of a part, as flaws of the whole. */
export const below = (part: string, flaws: Flaw[]) => flaws.map(({ path, message }) => ({ path: part + path, message }))

function fitting(shape: TObject, given: Record<string, unknown>, part: string) {
  const known = Value.Clean(shape, structuredClone(given)) as Record<string, unknown>
  const flaws = [...Value.Errors(shape, known)]
  if (flaws.length) invalid(...below(part, flaws))
  return known
}
