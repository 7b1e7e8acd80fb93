import type { TablerIcon } from '@tabler/icons-react'
import type { NewBlueprint, Rule } from '../api/schema'
import type { NewChart } from '../charts/saved-chart'

/** An entity of sample data. Relations name the identifiers of others. */
export type SampleEntity = { identifier: string; [field: string]: unknown }

/** What somebody may want to build: its blueprints with rules, sample data, and charts. */
export type Template = {
  key: string
  name: string
  /** What it is for, in one sentence. */
  description: string
  icon: TablerIcon
  /** A blueprint comes after those that its relations lead to. */
  blueprints: NewBlueprint[]
  /** Returns the sample data by blueprint; its times are around `now`. */
  makeEntities(now: Date): Record<string, SampleEntity[]>
  charts: NewChart[]
}

/** Everybody reads all, also guests. */
export const readableByGuests: Rule = { operation: 'read', scope: 'tenant', guest: true }

/** Returns rules by which users with a role read and change all. */
export const managedBy = (role: string): Rule[] =>
  (['create', 'read', 'update', 'delete'] as const).map((operation) => ({
    operation,
    scope: 'tenant',
    roleBased: [role],
  }))

/** Returns the moment so many days before another; negative ones are after it. */
export const daysBefore = (now: Date, days: number) => new Date(now.getTime() - days * 86_400_000).toISOString()

/** Returns the day so many days before a moment, as YYYY-MM-DD. */
export const dayBefore = (now: Date, days: number) => daysBefore(now, days).slice(0, 10)

/** Returns one of a list; it begins anew after the last. */
export const pick = <Item>(list: readonly Item[], index: number): Item => list[index % list.length] as Item
