import type { Field, NewBlueprint, Rule } from '../../api/schema'

/** A part of a draft that a person may leave out. */
type Choice<Part> = { part: Part; isIncluded: boolean }

/** A field of a drafted blueprint, with the name that a person gave it. */
export type DraftField = Choice<Field> & { key: string }

/** A drafted blueprint as a person reviews it: parts can be left out or renamed. */
export type DraftBlueprint = Choice<NewBlueprint> & {
  key: string
  name: string
  fields: DraftField[]
  rules: Choice<Rule>[]
}

/** Returns drafted blueprints for the review, with everything included. */
export const toDrafts = (blueprints: NewBlueprint[]): DraftBlueprint[] =>
  blueprints.map((part) => ({
    ...{ part, isIncluded: true, key: part.key, name: part.name },
    fields: part.fields.map((field) => ({ part: field, isIncluded: true, key: field.key })),
    rules: (part.permissions ?? []).map((rule) => ({ part: rule, isIncluded: true })),
  }))

/** Returns what is to be made: included parts under their new names. Relations to what was left out are left out, too. */
export function toNewBlueprints(drafts: DraftBlueprint[]): NewBlueprint[] {
  const keys = new Map(drafts.map(({ part, key, isIncluded }) => [part.key, isIncluded ? key : undefined]))
  const toField = ({ part, key }: DraftField): Field[] => {
    if (!part.target || !keys.has(part.target)) return [{ ...part, key }]
    const target = keys.get(part.target)
    return target ? [{ ...part, key, target }] : []
  }
  return drafts
    .filter(({ isIncluded }) => isIncluded)
    .map(({ part, key, name, fields, rules }) => ({
      ...{ ...part, key, name },
      fields: fields.filter(({ isIncluded }) => isIncluded).flatMap(toField),
      permissions: rules.filter(({ isIncluded }) => isIncluded).map(({ part: rule }) => rule),
    }))
}

/** Returns blueprints so that each one comes after those that it refers to, as far as they form no cycle. */
export function sortByReferences(blueprints: NewBlueprint[]): NewBlueprint[] {
  const sorted = new Set<NewBlueprint>()
  const visited = new Set<NewBlueprint>()
  const visit = (blueprint: NewBlueprint) => {
    if (visited.has(blueprint)) return
    visited.add(blueprint)
    for (const { target } of blueprint.fields) {
      const referenced = blueprints.find(({ key }) => key === target)
      if (referenced) visit(referenced)
    }
    sorted.add(blueprint)
  }
  for (const blueprint of blueprints) visit(blueprint)
  return [...sorted]
}
