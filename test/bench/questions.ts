import type { ContactField } from './contacts'

type ComparedField = ContactField | 'created' | 'updated' | 'identifier'
export type Filter = {
  field: ComparedField
  /** As Atoll writes it; equality without one. `$like` looks for a text within another. */
  operator?: '$ne' | '$lt' | '$lte' | '$gt' | '$gte' | '$in' | '$nin' | '$like'
  value: string | number | boolean
}

export type ListQuestion = {
  kind: 'list'
  filters: Filter[]
  /** Fields, with `-` before those in descending order; without, the newest come first. */
  sort?: string
  words?: readonly string[]
  isCounted?: boolean
  isPopulated?: boolean
  /** The caller is a member of this workspace, and sees its contacts only. */
  workspace?: number
}

/** What a request of the benchmark wants, which each server writes in its own way. */
export type Question =
  | { kind: 'get'; contact: number }
  | ListQuestion
  | { kind: 'create'; n: number }
  | { kind: 'update'; contact: number; change: { stage: string; worth: number } }
  | { kind: 'sign-in'; user: number }
