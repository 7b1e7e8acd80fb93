import type { Blueprint } from '../api/schema'
import { fieldKinds } from '../fields'
import { type DesignDraft, type DraftField, isNewField, isSame, toDefinition, toDraft } from './design-draft'
import { describeIndexChange } from './index-sentences'

const quote = (text: string) => `“${text}”`

/** How each option of a field reads after the name of the field. */
function describeOption(option: string, field: DraftField): string | undefined {
  const value = field[option as keyof DraftField]
  const isSet = value !== undefined && value !== false
  const texts: Record<string, string> = {
    required: isSet ? 'becomes required' : 'is no longer required',
    unique: isSet ? 'becomes unique' : 'need not be unique any more',
    multi: isSet ? 'becomes a list of values' : 'has a single value from now on',
    indexed: describeIndexChange(field),
    type: `becomes: ${fieldKinds[value as DraftField['type']]?.label.toLowerCase()}`,
    formula: isSet ? 'is computed by a formula' : 'is no longer computed',
    target: `points to ${quote(String(value))}`,
    enum: isSet ? 'has other choices' : 'takes any value',
    min: isSet ? `is at least ${value}` : 'has no lower bound any more',
    max: isSet ? `is at most ${value}` : 'has no upper bound any more',
    pattern: isSet ? 'has another pattern' : 'has no pattern any more',
    schema: 'has another schema',
    onDelete: 'does something else when its target is deleted',
    readRoles: 'is readable by other roles',
    writeRoles: 'is writable by other roles',
    default: isSet ? `begins as ${JSON.stringify(value)}` : 'has no default any more',
    title: 'has another title',
    description: 'has another description',
  }
  return texts[option]
}

function describeField(field: DraftField, was: DraftField | undefined): string[] {
  if (!was) return [`${quote(field.key)} is new.`]
  const options = [...new Set([...Object.keys(was), ...Object.keys(field)])].filter((each) => each !== 'id')
  const changed = options.filter((each) => !isSame(field[each as keyof DraftField], was[each as keyof DraftField]))
  return changed.flatMap((option) => {
    if (option === 'key') return `${quote(was.key)} is renamed to ${quote(field.key)}.`
    const text = describeOption(option, field)
    return text ? `${quote(field.key)} ${text}.` : []
  })
}

/** Returns the saved fields that a draft no longer has. */
export const listRemovedFields = (before: Blueprint, draft: DesignDraft) =>
  before.fields.filter(({ key }) => !draft.fields.some(({ id }) => id === key))

/** Returns the computed fields whose formulas name a field that is removed or renamed. */
function listStaleFormulas(before: Blueprint, draft: DesignDraft) {
  const missingKeys = before.fields
    .map(({ key }) => key)
    .filter((key) => !draft.fields.some((field) => field.key === key))
  return draft.fields.flatMap(({ key, formula = '' }) =>
    missingKeys
      .filter((name) => new RegExp(`(?<![\\w$])${name}(?!\\w)`).test(formula))
      .map((name) => `The formula of ${quote(key)} names ${quote(name)}, which no longer exists.`),
  )
}

/** Returns what a draft changes, as sentences. */
export function describeChanges(before: Blueprint, draft: DesignDraft): string[] {
  const was = toDraft(
    before,
    before.fields.map(({ key }) => key),
  )
  const [now, then] = [toDefinition(draft), toDefinition(was)]
  const parts = {
    name: `The name becomes ${quote(draft.name)}.`,
    description: 'The description changes.',
    permissions: 'The rules change.',
    permissionScope: 'The usual reach of rules changes.',
    limitations: 'The limits change.',
    dispatchers: 'Other events are recorded.',
    history: draft.history
      ? 'Changes of entities are recorded in a history.'
      : 'The history of the entities is removed.',
  }
  const order = (fields: DraftField[]) => fields.filter((field) => !isNewField(field)).map(({ id }) => id)
  const removed = listRemovedFields(before, draft)
  const kept = order(was.fields).filter((id) => !removed.some(({ key }) => key === id))
  return [
    ...removed.map(({ key }) => `${quote(key)} is removed.`),
    ...draft.fields.flatMap((field) =>
      describeField(
        field,
        was.fields.find(({ id }) => id === field.id),
      ),
    ),
    ...(isSame(order(draft.fields), kept) ? [] : ['The order of the fields changes.']),
    ...Object.entries(parts).flatMap(([part, text]) =>
      isSame(now[part as keyof typeof parts], then[part as keyof typeof parts]) ? [] : text,
    ),
    ...listStaleFormulas(before, draft),
  ]
}
