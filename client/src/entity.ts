/** What every entity has. This is the wrapped shape (`$flat=false`), which has properties only under `metadata`. */
export interface Entity<Properties = Record<string, unknown>> {
  _id: string
  identifier: string
  /** ISO 8601, UTC, with milliseconds. */
  created: string
  updated: string
  /** Whose entity it is: the id of a user; null when a guest created it. */
  user: string | null
  workspace: string | null
  metadata: Properties
}

/** The blueprints of the tenant, by key. */
// biome-ignore lint/suspicious/noEmptyInterface: each blueprint adds itself
export interface Blueprints {}
