import type { Blueprint, Entity } from '../api/schema'

const LABEL_KEYS = ['name', 'title', 'label', 'subject', 'username', 'email']

/** Returns what an entity is called where there is room for one text. */
export function toEntityLabel(entity: Entity): string {
  const key = LABEL_KEYS.find((each) => typeof entity[each] === 'string' && entity[each])
  return key ? String(entity[key]) : entity.identifier
}

/** Returns the fields of a blueprint that the label of an entity may be made of. */
export const listLabelKeys = ({ fields }: Pick<Blueprint, 'fields'>) =>
  fields.map(({ key }) => key).filter((key) => LABEL_KEYS.includes(key))
