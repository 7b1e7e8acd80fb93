import type { OpenCtx } from '../accounts/guard'
import { modelOf } from '../blueprints/blueprints'
import type { Reference } from '../blueprints/references'
import { mayRead, reachOf } from '../blueprints/rules'
import { Problem } from '../core/problem'

/** That an entity refers to one of the blueprint `target` that is to be removed. */
export type Pointer = { reference: Reference; target: string; entity: number; value: string }

/** Entities can't be removed, because of those that refer to them; or not at once, because those are too many. */
export class Held extends Error {
  constructor(
    readonly pointers: Pointer[],
    readonly tooMany = false,
  ) {
    super('Others refer to these entities.')
  }

  /** Whether the entity is one of those. */
  holds(identifier: string) {
    return this.pointers.some(({ value }) => value === identifier)
  }
}

const COUNTED = 1_000

/** Who holds them, by name only what the caller may see, and never which entities. */
export async function told(ctx: OpenCtx, { pointers, tooMany }: Held, deletedCount?: number): Promise<Problem> {
  const counts = new Map<Reference, Set<number>>()
  for (const { reference, entity } of pointers) counts.set(reference, (counts.get(reference) ?? new Set()).add(entity))
  const references: { blueprint?: string; field?: string; count: number }[] = []
  let hidden = 0
  for (const [{ blueprint, field }, { size }] of counts) {
    const model = await Promise.resolve(modelOf(ctx, blueprint)).catch(() => undefined)
    const known = model?.field.get(field)
    const sees = known && reachOf(model!, 'read', ctx.actor) && mayRead(known, ctx.actor)
    if (sees) references.push({ blueprint, field, count: Math.min(size, COUNTED) })
    else hidden += size
  }
  const names = references.map(({ blueprint, field, count }) => `${number(count)} of "${blueprint}" by "${field}"`)
  if (hidden) names.push(`${number(hidden)} that you may not see`)
  if (hidden) references.push({ count: Math.min(hidden, COUNTED) })
  const details = { references, ...(deletedCount !== undefined && { deletedCount }) }
  const before = deletedCount ? ` ${deletedCount} others were removed before.` : ''
  return tooMany
    ? new Problem(
        409,
        'TOO_MANY_REFERENCES',
        `More would be removed or changed along than is done at once: ${names.join(', ')}. Remove those first.${before}`,
        { details },
      )
    : new Problem(
        409,
        'ENTITY_IN_USE',
        `Other entities refer to this: ${names.join(', ')}. Change or remove those first.${before}`,
        { details },
      )
}

const number = (count: number) => (count >= COUNTED ? `${COUNTED} or more` : `${count}`)
