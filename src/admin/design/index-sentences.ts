import type { Field, FieldIndex } from '../api/schema'

/** When a field has an index. */
export const INDEX_WORDS = { needed: 'When needed', always: 'Always', never: 'Never' }
export type IndexChoice = keyof typeof INDEX_WORDS

type IndexedField = Pick<Field, 'type' | 'multi' | 'unique' | 'indexed'>

/** Returns when a field can have an index. The first choice is the usual one, which definitions leave out. */
export function listIndexChoices({ type, multi, unique }: IndexedField): IndexChoice[] {
  if (unique || type === 'relation') return ['always']
  return multi || type === 'object' || type === 'file' ? ['always', 'never'] : ['needed', 'always', 'never']
}

/** Returns the option `indexed` of a field, as definitions have it. */
export const toIndexed = (choice: IndexChoice, field: IndexedField): boolean | undefined =>
  choice === listIndexChoices(field)[0] ? undefined : choice === 'always'

/** Returns when a field has an index. */
export function getIndexChoice(field: IndexedField): IndexChoice {
  const choices = listIndexChoices(field)
  return choices.find((choice) => toIndexed(choice, field) === field.indexed) ?? choices[0]!
}

const CHANGES: Record<IndexChoice, string> = {
  needed: 'gets an index when a query needs it',
  always: 'always has an index',
  never: 'never has an index',
}

/** Returns how a changed choice reads after the name of the field. */
export const describeIndexChange = (field: IndexedField) => CHANGES[getIndexChoice(field)]

const CAUSES: Record<FieldIndex['reason'], string> = {
  setting: '“Always” was chosen',
  relation: 'relations need it',
  file: 'access to files needs it',
  unique: 'unique values need it',
  'list or object': 'lists and objects need it',
  limitation: 'a limit needed it',
  filter: 'a filter needed it',
  sort: 'an order needed it',
  chart: 'a chart needed it',
  list: 'a list needed it',
  'earlier version': 'an earlier version of Atoll indexed every field',
}

const MISSING: Record<IndexChoice, string> = {
  needed: 'Not indexed: no query has needed it recently.',
  always: 'Not indexed yet.',
  never: 'Not indexed, because “Never” was chosen.',
}

const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' })

/** Returns as a sentence which other fields a compound index has beside a field. */
export function describeCompoundIndex({ key }: Pick<Field, 'key'>, { fields, state, reason }: FieldIndex): string {
  const others = new Intl.ListFormat('en').format(fields.filter((name) => name !== key))
  if (state === 'building') return `Being indexed together with ${others}, because ${CAUSES[reason]}.`
  if (state === 'ready') return `Indexed together with ${others}, because ${CAUSES[reason]}.`
  return `The index together with ${others} is being removed.`
}

/** Returns as a sentence whether a saved field is indexed, and why. */
export function describeIndex(field: IndexedField, index: FieldIndex | undefined): string {
  if (!index) return MISSING[getIndexChoice(field)]
  const { state, reason, since } = index
  if (state === 'building') return `Being built, because ${CAUSES[reason]}.`
  if (state === 'ready') return `Indexed since ${day.format(Date.parse(since))}, because ${CAUSES[reason]}.`
  return 'Being removed, because no query has used it for 30 days.'
}
