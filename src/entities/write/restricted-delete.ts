import type { PublicCtx } from '../../accounts/context'
import { getModel } from '../../blueprints/blueprints'
import { mayReadField, rowScopeOf } from '../../blueprints/permissions'
import type { Reference } from '../../blueprints/references'
import { Problem } from '../../core/problem'

/** A reference of an entity to an entity of the blueprint `target` that is to be removed. */
export type Pointer = { reference: Reference; target: string; entity: number; value: string }

/** Entities cannot be removed because others refer to them, or with `tooMany` because too many others are affected. */
export class RestrictedDelete extends Error {
  constructor(
    readonly pointers: Pointer[],
    readonly tooMany = false,
  ) {
    super('Other entities refer to these entities.')
  }

  /** Returns whether the entity is one of those that cannot be removed. */
  isRestricted(identifier: string) {
    return this.pointers.some(({ value }) => value === identifier)
  }

  /** Returns the error for one of the entities that cannot be removed. */
  narrow(identifier: string): RestrictedDelete {
    return this.tooMany ? this : new RestrictedDelete(this.pointers.filter(({ value }) => value === identifier))
  }
}

const MAX_COUNTED_REFERENCES = 1_000

/**
 * Returns the error with counts of the references. It names only fields that the caller may read, and never entities.
 */
export async function toProblem(
  ctx: PublicCtx,
  { pointers, tooMany }: RestrictedDelete,
  deletedCount?: number,
): Promise<Problem> {
  const counts = new Map<Reference, Set<number>>()
  for (const { reference, entity } of pointers) counts.set(reference, (counts.get(reference) ?? new Set()).add(entity))
  const references: { blueprint?: string; field?: string; count: number }[] = []
  let hidden = 0
  for (const [{ blueprint, field }, { size }] of counts) {
    // A blueprint that cannot be read counts as hidden.
    const model = await Promise.resolve(getModel(ctx, blueprint)).catch(() => undefined)
    const modelField = model?.field.get(field)
    const isVisible = modelField && rowScopeOf(model!, 'read', ctx.actor) && mayReadField(modelField, ctx.actor)
    if (isVisible) references.push({ blueprint, field, count: Math.min(size, MAX_COUNTED_REFERENCES) })
    else hidden += size
  }
  const names = references.map(({ blueprint, field, count }) => `${formatCount(count)} of "${blueprint}" by "${field}"`)
  if (hidden) names.push(`${formatCount(hidden)} that are not visible to you`)
  if (hidden) references.push({ count: Math.min(hidden, MAX_COUNTED_REFERENCES) })
  const details = { references, ...(deletedCount !== undefined && { deletedCount }) }
  const before = deletedCount ? ` ${deletedCount} entities were deleted before that.` : ''
  return tooMany
    ? new Problem(
        409,
        'TOO_MANY_REFERENCES',
        `Too many entities would be deleted or changed with it: ${names.join(', ')}. Delete those first.${before}`,
        { details },
      )
    : new Problem(
        409,
        'ENTITY_IN_USE',
        `Other entities refer to this one: ${names.join(', ')}. Change or delete those first.${before}`,
        { details },
      )
}

const formatCount = (count: number) =>
  count >= MAX_COUNTED_REFERENCES ? `${MAX_COUNTED_REFERENCES} or more` : `${count}`
