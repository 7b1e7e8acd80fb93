import { may } from '../../../accounts/permissions'
import * as all from '../../../blueprints/blueprints'
import { NewBlueprint } from '../../../blueprints/shapes'
import { type Flaw, invalid, Problem } from '../../../core/problem'
import { type DraftKind, flawsOf } from '../drafts'

/** What entities are like. Those that are drafted together may refer to each other. */
export const blueprints: DraftKind<typeof NewBlueprint> = {
  ...{ one: 'blueprint', shape: NewBlueprint, area: 'blueprints' },
  async flaws(ctx, drafts) {
    const known = new Set((await all.knownTo(ctx)).map(({ key }) => key))
    const own = drafts.map(({ key }) => key)
    const flaws: Flaw[] = []
    for (const [n, { key, name: _, description: __, ...definition }] of drafts.entries()) {
      flaws.push(...(await flawsOf(n, () => all.refuseUnfit(definition))))
      if (known.has(key)) flaws.push({ path: `/${n}/key`, message: `There is a blueprint "${key}" already.` })
      if (own.indexOf(key) < n)
        flaws.push({ path: `/${n}/key`, message: `There are two drafts with the key "${key}".` })
      for (const [field, { target }] of definition.fields.entries())
        if (target && !known.has(target) && !own.includes(target))
          flaws.push({ path: `/${n}/fields/${field}/target`, message: `There is no blueprint "${target}".` })
    }
    return flaws
  },
  refuseUnlessMayMake({ actor }) {
    if (!may(actor, 'editor')) throw new Problem(403, 'FORBIDDEN', 'Your roles do not allow you to make blueprints.')
  },
  inOrder,
  make: all.create,
}

/** Those to which others lead come first. @throws 400 where they lead to each other in a circle */
function inOrder(drafts: NewBlueprint[]): NewBlueprint[] {
  const done = new Set<NewBlueprint>()
  const take = (draft: NewBlueprint, above: NewBlueprint[]) => {
    if (above.includes(draft)) invalid({ path: '/blueprints', message: circle(draft.key) })
    for (const { target } of draft.fields) {
      const other = drafts.find(({ key }) => key === target)
      if (other && other !== draft && !done.has(other)) take(other, [...above, draft])
    }
    done.add(draft)
  }
  for (const draft of drafts) if (!done.has(draft)) take(draft, [])
  return [...done]
}

const circle = (key: string) =>
  `"${key}" and others refer to each other in a circle, so none of them can be made first. Make them without one of these relations, and add it afterwards.`
