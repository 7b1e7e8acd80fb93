import type { FieldType } from '../fields/field-kind'

type FieldTraits = {
  /** What `min` and `max` limit. */
  bounds?: 'length' | 'value'
  /** Whether a list of allowed values makes sense. */
  hasChoices?: boolean
}

/** What the server allows for each type of fields. */
export const fieldTraits: Record<FieldType, FieldTraits> = {
  string: { bounds: 'length', hasChoices: true },
  text: { bounds: 'length', hasChoices: true },
  email: { bounds: 'length', hasChoices: true },
  url: { bounds: 'length', hasChoices: true },
  file: { bounds: 'length', hasChoices: true },
  integer: { bounds: 'value', hasChoices: true },
  number: { bounds: 'value', hasChoices: true },
  decimal: { bounds: 'value', hasChoices: true },
  date: { bounds: 'value', hasChoices: true },
  time: { bounds: 'value', hasChoices: true },
  datetime: { bounds: 'value', hasChoices: true },
  boolean: {},
  object: {},
  relation: {},
}

/** What happens to an entity when the one it refers to is removed. */
export const ON_DELETE_WORDS = {
  restrict: 'The other entity cannot be deleted',
  nullify: 'This value is removed',
  cascade: 'This entity is also deleted',
}

/** How the bounds of a field are called: of lengths, of values, or of how many values a list has. */
export function boundLabels(type: FieldType, isList: boolean): [min: string, max: string] | undefined {
  if (isList) return ['Fewest values', 'Most values']
  const { bounds } = fieldTraits[type]
  if (bounds === 'length') return ['Fewest characters', 'Most characters']
  return bounds && ['Lowest value', 'Highest value']
}

// What the server says about keys, known before anything is sent.
const KEY_PATTERN = /^[a-zA-Z][a-zA-Z0-9_]{0,62}$/

/** Returns what is wrong with the key of a field, or undefined. */
export const findKeyFlaw = (key: string): string | undefined =>
  KEY_PATTERN.test(key) ? undefined : 'Begin with a letter, and use only letters, digits and _ (63 at most).'
