import type { Integration } from '../../../api/schema'
import type { FormField } from '../../../fields/field-form'

export type Trigger = Integration['trigger']
export type TriggerName = Trigger['kind']

/** What the page has to know about one kind of triggers. */
export type TriggerKind<Name extends TriggerName = TriggerName> = {
  /** Goes on after "When". */
  label: string
  /** What it needs, by the names that the API uses. */
  fields: FormField[]
  /** Returns when it fires, as the first half of a sentence. */
  describe(trigger: Extract<Trigger, { kind: Name }>): string
  /** Whether somebody calls it, so that it matters who may. */
  hasCaller: boolean
}
