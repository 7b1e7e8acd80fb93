import { hasPermission } from '../../../accounts/permissions'
import * as blueprintStore from '../../../blueprints/blueprints'
import { NewBlueprint } from '../../../blueprints/shapes'
import { badRequest, type FieldError, Problem } from '../../../core/problem'
import { collectErrors, defineDraftKind } from '../draft-kind'

/** Drafts of blueprints. Those of one call may refer to each other. */
export const blueprints = defineDraftKind({
  ...{ singular: 'blueprint', plural: 'blueprints', shape: NewBlueprint, area: 'blueprints' },
  async validate(ctx, drafts) {
    const existingKeys = new Set((await blueprintStore.listVisible(ctx)).map(({ key }) => key))
    const draftKeys = drafts.map(({ key }) => key)
    const fieldErrors: FieldError[] = []
    for (const [n, { key, name: _, description: __, ...definition }] of drafts.entries()) {
      fieldErrors.push(...(await collectErrors(n, () => blueprintStore.validateNew(definition))))
      if (existingKeys.has(key))
        fieldErrors.push({ path: `/${n}/key`, message: `A blueprint "${key}" already exists.` })
      if (draftKeys.indexOf(key) < n)
        fieldErrors.push({ path: `/${n}/key`, message: `Two drafts have the key "${key}".` })
      for (const [field, { target }] of definition.fields.entries())
        if (target && !existingKeys.has(target) && !draftKeys.includes(target))
          fieldErrors.push({ path: `/${n}/fields/${field}/target`, message: `There is no blueprint "${target}".` })
    }
    return fieldErrors
  },
  assertMayCreate({ actor }) {
    if (!hasPermission(actor, 'editor'))
      throw new Problem(403, 'FORBIDDEN', 'Your roles do not allow you to create blueprints.')
  },
  sortForCreation: sortByReferences,
  create: blueprintStore.create,
})

/** Sorts blueprints so that each one comes after those that it refers to. @throws 400 when they form a cycle */
function sortByReferences(drafts: NewBlueprint[]): NewBlueprint[] {
  const sorted = new Set<NewBlueprint>()
  const visit = (draft: NewBlueprint, ancestors: NewBlueprint[]) => {
    if (ancestors.includes(draft)) badRequest({ path: '/blueprints', message: cycleMessage(draft.key) })
    for (const { target } of draft.fields) {
      const referenced = drafts.find(({ key }) => key === target)
      if (referenced && referenced !== draft && !sorted.has(referenced)) visit(referenced, [...ancestors, draft])
    }
    sorted.add(draft)
  }
  for (const draft of drafts) if (!sorted.has(draft)) visit(draft, [])
  return [...sorted]
}

const cycleMessage = (key: string) =>
  `"${key}" and other blueprints refer to each other in a cycle, so none of them can be created first. Create them without one of these relations, and add it afterwards.`
