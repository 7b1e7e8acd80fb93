import type { Integration } from '../../../api/schema'
import type { FormField } from '../../../fields/field-form'

export type Target = Integration['target']
export type TargetName = Target['kind']

/** Returns what a lambda or a connection is called. */
export type FindName = (id: string) => string

/** What the page has to know about one kind of targets. */
export type TargetKind<Name extends TargetName = TargetName> = {
  /** Goes on after "then". */
  label: string
  /** What it needs, by the names that the API uses. */
  fields: FormField[]
  /** Returns what it does, as the second half of a sentence. */
  describe(target: Extract<Target, { kind: Name }>, findName: FindName): string
}
